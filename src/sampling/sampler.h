// Draws the next token of one row of logits. A pure function of (logits, params, position).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/row_draw.h"
#include "src/sequence/sampling_params.h"

namespace llm {

struct SampledToken {
  int32_t id = 0;
  float logprob = 0;              // of the unmodified distribution; always set
  std::vector<TokenLogprob> top;  // num_logprobs most likely, descending, ties by lower id
};

struct LogitsRow {
  absl::Span<const float> logits;  // [vocab_size]; empty: only the best id can be taken
  int32_t argmax = 0;              // from RowStats
  float max = 0;
  float log_sum_exp = 0;
};

// `position` is the index in the sequence of the token that is drawn: the random number is a
// function of (seed, position) alone. INTERNAL "logits are not finite" when argmax is -1. Filters
// apply in the order temperature, top-k, top-p, min-p. REQUIRES: logits, unless the request is
// greedy and wants no logprobs but the token's.
absl::StatusOr<SampledToken> Sample(const LogitsRow& row, const SamplingParams& params,
                                    int64_t position);

// Sets logprob and top of a token that was drawn from a changed row, from the unmodified `row`.
void SetLogprobs(const LogitsRow& row, int32_t num_logprobs, SampledToken* token);

}  // namespace llm
