// Draws a token from rows of logits, and names the most likely ones. The engine's sampler
// (src/sampling) draws the same from the same row: both keep to kernels/sample_math.h.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/row_draw.h"
#include "src/tensor/stream.h"

namespace llm {

// A draw: the edits change the row; the largest logit is taken when temperature is 0 or top_k 1,
// the lower id at a tie; else an id by its weight, of those that top-k, top-p within top-k, and
// min-p all keep (ties by lower id), at the place that RandomBits(seed, position) names in the sum
// of weights in id order. Log-probabilities are those of the row without its edits.
struct SampleParams {
  float* logits = nullptr;  // [rows, cols]; changed meanwhile, then as before
  int64_t rows = 0;
  int64_t cols = 0;                    // at most kMaxDrawCols
  const int32_t* argmax = nullptr;     // [rows], of row_stats, as the next two
  const float* max = nullptr;          // [rows]
  const float* log_sum_exp = nullptr;  // [rows]
  absl::Span<const RowDraw> draws;     // in ascending order of their rows, one each
  absl::Span<const LogitEdit> edits;   // a draw's are of different ids, and behind those before it
  float* originals = nullptr;          // [edits]; scratch
  TokenLogprob* drawn = nullptr;       // [draws]; an id below 0 is a DrawFailure
  TokenLogprob* top = nullptr;         // [draws, max_top], of each the first num_top; unwritten
  int64_t max_top = 0;                 // where drawn is kLogitsNotFinite
};
using SampleFn = absl::Status (*)(const SampleParams& params, const Stream& stream);

}  // namespace llm
