// A row of logits as a request changes it, in the host's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/sampling/logit_edits.h"
#include "src/sampling/sampler.h"

namespace llm {

// Scratch memory of one row, kept from row to row.
class RowAdjuster {
 public:
  explicit RowAdjuster(int32_t vocab_size) : logits_(static_cast<size_t>(vocab_size)) {}

  // The changed row, valid until the next call; its log_sum_exp is the original's. argmax is -1
  // when every id is banned. REQUIRES: row.logits has vocab_size elements; every id is below it,
  // and edited once.
  LogitsRow Adjust(const LogitsRow& row, absl::Span<const LogitEdit> edits);

 private:
  std::vector<float> logits_;  // [vocab_size]
};

}  // namespace llm
