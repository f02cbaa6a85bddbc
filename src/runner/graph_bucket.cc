// Rows count in eights from there on, since linear layers work on tiles of 8 or 16.
#include "src/runner/graph_bucket.h"

#include <algorithm>
#include <bit>

#include "kernels/attention.h"
#include "src/base/math.h"

namespace llm {
namespace {

constexpr int kFewRows = 8;
constexpr int kMaxGraphs = 32;
// A layer's launches are some 12 (llama) to 40 (latent attention and experts), the rest 10.
constexpr size_t kLaunchesPerLayer = 24;
constexpr size_t kOtherLaunches = 24;
// The driver does not say what a launch takes in a graph: its parameters are some 200 bytes, the
// rest is the device's own description of it. An estimate.
constexpr size_t kLaunchBytes = 4096;

int RowBucket(int rows, int max_rows) {
  const auto octave = static_cast<int>(std::bit_floor(static_cast<unsigned>(rows)));
  const int step = std::max(kFewRows, octave / 4);
  const int bucket = rows <= kFewRows ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows)))
                                      : RoundUp(rows, step);
  return std::min(bucket, max_rows);
}

int ContextBucket(int context, int max_context) {
  int64_t bucket = kAttentionSplit;
  while (bucket < context) bucket *= 2;
  return static_cast<int>(std::min<int64_t>(bucket, max_context));
}

}  // namespace

std::optional<GraphBucket> BucketOf(const StepPlan& plan, const GraphShape& shape) {
  const auto num_rows = static_cast<int64_t>(plan.chunks.size());
  if (num_rows == 0 || num_rows > shape.max_rows) return std::nullopt;
  const bool long_rope = plan.chunks.front().sequence->request.long_rope;
  int longest = 0;
  for (const ScheduledChunk& chunk : plan.chunks) {
    if (!IsDecode(chunk) || chunk.begin < 0 || chunk.begin >= shape.max_context ||
        chunk.sequence->request.long_rope != long_rope) {
      return std::nullopt;
    }
    longest = std::max(longest, chunk.begin + 1);
  }
  const int context = ContextBucket(longest, shape.max_context);
  return GraphBucket{.padding = {.rows = RowBucket(static_cast<int>(num_rows), shape.max_rows),
                                 .max_blocks = CeilDiv(context, shape.block_size)},
                     .long_rope = long_rope};
}

int MaxGraphs(const GraphShape& shape) {
  int num_rows = 0;
  for (int rows = 1; rows <= shape.max_rows && num_rows < kMaxGraphs; ++num_rows) {
    rows = RowBucket(rows, shape.max_rows) + 1;
  }
  const int num_contexts = shape.max_context > kAttentionSplit ? 2 : 1;
  return std::min(kMaxGraphs, num_rows * num_contexts);
}

size_t GraphBytes(const GraphShape& shape) {
  const size_t launches =
      static_cast<size_t>(shape.num_layers) * kLaunchesPerLayer + kOtherLaunches;
  return static_cast<size_t>(MaxGraphs(shape)) * launches * kLaunchBytes;
}

}  // namespace llm
