// Which decode steps share a graph: the shape that they are filled up to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/runner/batch_builder.h"
#include "src/scheduler/step_plan.h"

namespace llm {

// What a runner's steps are bounded by.
struct GraphShape {
  int max_rows = 0;  // sequences of a step that all decode
  int max_context = 0;
  int block_size = 16;
  int num_layers = 0;
};

// All that the launches of a step of decodes depend on, but for the contents of its arrays.
struct GraphBucket {
  BatchPadding padding;
  bool long_rope = false;  // of every row

  bool operator==(const GraphBucket&) const = default;
};

// Of a step in which every chunk is one token with logits and nothing else; else none. Up to 8 rows
// buckets are powers of two, above multiples of 8 and four an octave: from 32 rows on at most a
// quarter of them is added;
// contexts double from a split of attention's on. Rows that turn by different frequencies
// (longrope) have launches of their own and no bucket.
std::optional<GraphBucket> BucketOf(const StepPlan& plan, const GraphShape& shape);

// Graphs that are kept at a time: each number of rows with two lengths of contexts, 32 at most.
int MaxGraphs(const GraphShape& shape);

// Device memory to keep for them.
size_t GraphBytes(const GraphShape& shape);

}  // namespace llm
