// What sampling needs of a row of logits: the largest one, and the log of the sum of exponentials.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "src/tensor/stream.h"

namespace llm {

// A row that holds a NaN or no finite value has argmax -1, and NaN as max and log_sum_exp. A
// maximum of +infinity is also the log_sum_exp.
//
// The vocabulary is split at fixed positions (every 4,096), the parts merged in ascending order:
// the result of a row does not depend on threads or other rows.
struct RowStatsParams {
  const float* logits = nullptr;  // [rows, cols]
  int64_t rows = 0;
  int64_t cols = 0;
  int32_t* argmax = nullptr;     // [rows]: lowest index of the maximum
  float* max = nullptr;          // [rows]
  float* log_sum_exp = nullptr;  // [rows]; log-probability of id i is logits[i] - log_sum_exp
};
using RowStatsFn = absl::Status (*)(const RowStatsParams& params, const Stream& stream);

}  // namespace llm
