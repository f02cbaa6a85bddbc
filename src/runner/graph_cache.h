// Steps of decodes as graphs: what a step puts on a device's stream is recorded once for each
// bucket and then launched as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "src/runner/graph_bucket.h"
#include "src/runner/graph_counters.h"
#include "src/tensor/device.h"

namespace llm {

// Graphs name the memory that they were recorded with (workspace, keys and values, weights, a
// step's arrays), which a runner never moves: a cache is of one runner, and goes before its memory.
//
// The first step of a bucket runs launch by launch, in the bucket's shape, so that kernels are
// loaded and libraries have made their choices; the second is recorded. So a bucket that a batch
// only passes through costs nothing. The least recently used one gives way when there are too many.
class GraphCache {
 public:
  // The stream outlives the cache.
  GraphCache(const GraphShape& shape, DeviceStream* stream) : shape_(shape), stream_(stream) {}

  // The shape that a step is to be filled up to; none: it is run as it is.
  std::optional<GraphBucket> BucketOf(const StepPlan& plan) const;

  // Puts the step's work on the stream. `launch` does that by itself; `launch_largest` likewise,
  // for contexts as long as the bucket has room for. A failure to record or to launch a graph is no
  // failure of the step. REQUIRES: `bucket` is BucketOf's, nothing of the step's arrays is on the
  // stream yet.
  absl::Status Run(const GraphBucket& bucket, absl::FunctionRef<absl::Status()> launch,
                   absl::FunctionRef<absl::Status()> launch_largest);

  const GraphCounters& counters() const { return counters_; }

 private:
  struct Entry {
    GraphBucket bucket;
    uint64_t last_used = 0;
    bool refused = false;
    std::unique_ptr<DeviceGraph> graph = nullptr;  // null: not recorded yet
  };

  // The bucket's entry, a new one in the place of the least recently used if need be.
  Entry* Find(const GraphBucket& bucket, bool* is_new);
  std::unique_ptr<DeviceGraph> Record(absl::FunctionRef<absl::Status()> launch_largest);

  const GraphShape shape_;
  DeviceStream* const stream_;
  std::vector<Entry> entries_;  // at most MaxGraphs(shape_)
  uint64_t num_runs_ = 0;
  GraphCounters counters_;
};

}  // namespace llm
