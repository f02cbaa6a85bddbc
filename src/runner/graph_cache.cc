// A device that is lost fails the launches that follow too, which say so.
#include "src/runner/graph_cache.h"

#include <algorithm>
#include <new>
#include <utility>

namespace llm {
namespace {

constexpr int kMaxDoublings = 10;  // 1,024 steps are some seconds, a recording some milliseconds

// Host memory that is short is a failure as any other: the stream must not go on recording.
absl::Status OrOutOfMemory(absl::FunctionRef<absl::Status()> call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("graph");
  }
}

}  // namespace

std::optional<GraphBucket> GraphCache::BucketOf(const StepPlan& plan) {
  std::optional<GraphBucket> bucket = llm::BucketOf(plan, shape_);
  Entry* const entry = bucket ? Find(*bucket) : nullptr;
  if (entry == nullptr || entry->num_steps_without == 0) return bucket;
  --entry->num_steps_without;
  entry->last_used = ++num_uses_;
  return std::nullopt;
}

GraphCache::Entry* GraphCache::Find(const GraphBucket& bucket) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.bucket == bucket; });
  return found == entries_.end() ? nullptr : &*found;
}

GraphCache::Entry* GraphCache::Add(const GraphBucket& bucket) {
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
  if (!OrOutOfMemory([&] { return stream_->BeginRecording(); }).ok()) return nullptr;
  const absl::Status recorded = OrOutOfMemory(launch_largest);
  std::unique_ptr<DeviceGraph> graph;
  const absl::Status ended = OrOutOfMemory([&] {
    absl::StatusOr<std::unique_ptr<DeviceGraph>> made = stream_->EndRecording();
    if (made.ok()) graph = *std::move(made);
    return made.status();
  });
  if (!recorded.ok() || !ended.ok()) return nullptr;
  ++counters_.recordings_total;
  return graph;
}

bool GraphCache::RunGraph(absl::FunctionRef<absl::Status()> launch_largest, Entry* entry) {
  if (entry->graph == nullptr) entry->graph = Record(launch_largest);
  if (entry->graph != nullptr && stream_->Launch(*entry->graph).ok()) {
    ++counters_.launches_total;
    entry->num_failures = 0;
    return true;
  }
  ++counters_.failures_total;
  entry->graph = nullptr;
  entry->num_failures = std::min(entry->num_failures + 1, kMaxDoublings);
  entry->num_steps_without = 1 << entry->num_failures;
  return false;
}

absl::Status GraphCache::Run(const GraphBucket& bucket, absl::FunctionRef<absl::Status()> launch,
                             absl::FunctionRef<absl::Status()> launch_largest) {
  Entry* entry = Find(bucket);
  const bool is_new = entry == nullptr;
  if (is_new) entry = Add(bucket);
  entry->last_used = ++num_uses_;
  if (is_new || entry->num_steps_without > 0) return launch();
  return RunGraph(launch_largest, entry) ? absl::OkStatus() : launch();
}

}  // namespace llm
