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
// loaded; the second is recorded. So a bucket that a batch only passes through costs nothing. The
// least recently used one gives way when there are too many.
//
// A bucket whose graph could not be made or launched goes without for 2 steps, after a second
// failure for 4, and so on up to 1,024, until one is launched again: what is short now, as memory,
// may not be so later.
class GraphCache {
 public:
  // The stream outlives the cache.
  GraphCache(const GraphShape& shape, DeviceStream* stream) : shape_(shape), stream_(stream) {}

  // The shape that a step is to be filled up to; none: it is run as it is. Asked once for a step,
  // since it counts those that a bucket goes without its graph.
  std::optional<GraphBucket> BucketOf(const StepPlan& plan);

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
    std::unique_ptr<DeviceGraph> graph = nullptr;  // null: not recorded yet
    int num_failures = 0;                          // since a graph was launched
    int num_steps_without = 0;                     // before the next attempt
  };

  Entry* Find(const GraphBucket& bucket);  // null: there is none
  // In the place of the least recently used one if need be.
  Entry* Add(const GraphBucket& bucket);
  std::unique_ptr<DeviceGraph> Record(absl::FunctionRef<absl::Status()> launch_largest);
  bool RunGraph(absl::FunctionRef<absl::Status()> launch_largest, Entry* entry);

  const GraphShape shape_;
  DeviceStream* const stream_;
  std::vector<Entry> entries_;  // at most MaxGraphs(shape_)
  uint64_t num_uses_ = 0;
  GraphCounters counters_;
};

}  // namespace llm
