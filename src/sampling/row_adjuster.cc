// Counting takes two walks over the tokens and leaves the table zero: the cost follows the text,
// not the vocabulary.
#include "src/sampling/row_adjuster.h"

#include <algorithm>
#include <limits>

namespace llm {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

}  // namespace

void RowAdjuster::Begin(const LogitsRow& row) {
  std::copy(row.logits.begin(), row.logits.end(), logits_.begin());
  log_sum_exp_ = row.log_sum_exp;
}

void RowAdjuster::Apply(const SamplingParams& params, absl::Span<const int32_t> tokens,
                        int32_t num_prompt) {
  for (const LogitBias& bias : params.logit_bias) {
    logits_[static_cast<size_t>(bias.id)] += bias.bias;
  }
  if (params.repetition_penalty != 1.0f) PenalizeRepetition(params.repetition_penalty, tokens);
  if (params.presence_penalty != 0.0f || params.frequency_penalty != 0.0f) {
    PenalizeOutput(params, tokens.subspan(static_cast<size_t>(num_prompt)));
  }
}

// Keskar et al., CTRL (2019), with the sign rule that all engines have since: a penalty above 1
// always makes the id less likely.
void RowAdjuster::PenalizeRepetition(float penalty, absl::Span<const int32_t> tokens) {
  for (const int32_t id : tokens) {
    const size_t i = static_cast<size_t>(id);
    if (counts_[i]++ > 0) continue;
    logits_[i] = logits_[i] > 0.0f ? logits_[i] / penalty : logits_[i] * penalty;
  }
  for (const int32_t id : tokens) counts_[static_cast<size_t>(id)] = 0;
}

void RowAdjuster::PenalizeOutput(const SamplingParams& params, absl::Span<const int32_t> output) {
  for (const int32_t id : output) ++counts_[static_cast<size_t>(id)];
  for (const int32_t id : output) {
    int32_t& count = counts_[static_cast<size_t>(id)];
    if (count == 0) continue;
    logits_[static_cast<size_t>(id)] -=
        params.presence_penalty + params.frequency_penalty * static_cast<float>(count);
    count = 0;
  }
}

void RowAdjuster::BanBadWords(const SamplingParams& params, absl::Span<const int32_t> output) {
  for (const std::vector<int32_t>& word : params.bad_words) {
    const size_t before = word.size() - 1;
    if (before > output.size()) continue;
    if (!std::equal(word.begin(), word.end() - 1, output.end() - static_cast<ptrdiff_t>(before))) {
      continue;
    }
    Ban(absl::MakeConstSpan(&word.back(), 1));
  }
}

void RowAdjuster::Ban(absl::Span<const int32_t> ids) {
  for (const int32_t id : ids) logits_[static_cast<size_t>(id)] = kBanned;
}

LogitsRow RowAdjuster::Finish() const {
  LogitsRow row;
  row.logits = logits_;
  const auto best = std::max_element(logits_.begin(), logits_.end());  // the first at a tie
  row.max = *best;
  row.argmax = row.max == kBanned ? -1 : static_cast<int32_t>(best - logits_.begin());
  row.log_sum_exp = log_sum_exp_;
  return row;
}

}  // namespace llm
