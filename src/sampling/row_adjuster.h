// Changes a row of logits by what the request asks and has generated so far: bias, penalties, bans.
// A pure function of these, so that no schedule can change the answer.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/sampling/sampler.h"
#include "src/sequence/sampling_params.h"

namespace llm {

// Of rows that AdjustsRow names. Scratch memory of one row, kept from row to row.
class RowAdjuster {
 public:
  explicit RowAdjuster(int32_t vocab_size)
      : logits_(static_cast<size_t>(vocab_size)), counts_(static_cast<size_t>(vocab_size), 0) {}

  // REQUIRES: row.logits has vocab_size elements; every id is below it.
  void Begin(const LogitsRow& row);
  // Bias first, then the penalties; both of the row as the model gave it. `tokens`: prompt and
  // output.
  void Apply(const SamplingParams& params, absl::Span<const int32_t> tokens, int32_t num_prompt);
  // What would complete a bad word in `output` cannot be drawn.
  void BanBadWords(const SamplingParams& params, absl::Span<const int32_t> output);
  // These ids cannot be drawn.
  void Ban(absl::Span<const int32_t> ids);
  // The changed row, valid until the next Begin; its log_sum_exp is the original's. argmax is -1
  // when every id is banned.
  LogitsRow Finish() const;

 private:
  void PenalizeRepetition(float penalty, absl::Span<const int32_t> tokens);
  void PenalizeOutput(const SamplingParams& params, absl::Span<const int32_t> output);

  std::vector<float> logits_;    // [vocab_size]
  std::vector<int32_t> counts_;  // [vocab_size]; all zero between calls
  float log_sum_exp_ = 0.0f;
};

}  // namespace llm
