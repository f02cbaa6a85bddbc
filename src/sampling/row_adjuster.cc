// The original row stays: log-probabilities are its.
#include "src/sampling/row_adjuster.h"

#include <algorithm>
#include <limits>

namespace llm {

LogitsRow RowAdjuster::Adjust(const LogitsRow& row, absl::Span<const LogitEdit> edits) {
  std::copy(row.logits.begin(), row.logits.end(), logits_.begin());
  for (const LogitEdit& edit : edits) {
    float& logit = logits_[static_cast<size_t>(edit.id)];
    logit = edit(logit);
  }
  LogitsRow adjusted;
  adjusted.logits = logits_;
  const auto best = std::max_element(logits_.begin(), logits_.end());  // the first at a tie
  adjusted.max = *best;
  const bool is_left = adjusted.max != -std::numeric_limits<float>::infinity();
  adjusted.argmax = is_left ? static_cast<int32_t>(best - logits_.begin()) : -1;
  adjusted.log_sum_exp = row.log_sum_exp;
  return adjusted;
}

}  // namespace llm
