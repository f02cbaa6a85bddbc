// A device that is lost fails the launches that follow too, which say so.
#include "src/runner/graph_cache.h"

#include <algorithm>
#include <new>
#include <utility>

namespace llm {

std::optional<GraphBucket> GraphCache::BucketOf(const StepPlan& plan) const {
  std::optional<GraphBucket> bucket = llm::BucketOf(plan, shape_);
  for (const Entry& entry : entries_) {
    if (bucket && entry.bucket == *bucket && entry.refused) return std::nullopt;
  }
  return bucket;
}

GraphCache::Entry* GraphCache::Find(const GraphBucket& bucket, bool* is_new) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.bucket == bucket; });
  *is_new = found == entries_.end();
  if (!*is_new) return &*found;
  if (entries_.size() < static_cast<size_t>(MaxGraphs(shape_))) {
    return &entries_.emplace_back(Entry{.bucket = bucket});
  }
  const auto oldest =
      std::min_element(entries_.begin(), entries_.end(),
                       [](const Entry& a, const Entry& b) { return a.last_used < b.last_used; });
  *oldest = {.bucket = bucket};
  return &*oldest;
}

std::unique_ptr<DeviceGraph> GraphCache::Record(absl::FunctionRef<absl::Status()> launch_largest) {
  if (!stream_->BeginCapture().ok()) return nullptr;
  absl::Status status;
  try {
    status = launch_largest();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("");  // the stream must not go on recording
  }
  absl::StatusOr<std::unique_ptr<DeviceGraph>> graph = stream_->EndCapture();
  if (!status.ok() || !graph.ok()) return nullptr;
  ++counters_.captures_total;
  return *std::move(graph);
}

absl::Status GraphCache::Run(const GraphBucket& bucket, absl::FunctionRef<absl::Status()> launch,
                             absl::FunctionRef<absl::Status()> launch_largest) {
  bool is_new = false;
  Entry* entry = Find(bucket, &is_new);
  entry->last_used = ++num_runs_;
  if (is_new || entry->refused) return launch();
  if (entry->graph == nullptr) entry->graph = Record(launch_largest);
  if (entry->graph != nullptr && stream_->Launch(*entry->graph).ok()) {
    ++counters_.launches_total;
    return absl::OkStatus();
  }
  ++counters_.failures_total;
  entry->graph = nullptr;
  entry->refused = true;
  return launch();
}

}  // namespace llm
