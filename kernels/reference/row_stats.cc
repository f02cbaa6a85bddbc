// Maximum first, then the sum of exponentials relative to it.
#include <cmath>
#include <limits>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

void RowStats(const RowStatsParams& p, int64_t row) {
  const float* x = p.logits + row * p.cols;
  int64_t best = 0;
  bool any_finite = false;
  bool any_nan = false;
  for (int64_t i = 0; i < p.cols; ++i) {
    if (x[i] > x[best]) best = i;
    any_finite = any_finite || std::isfinite(x[i]);
    any_nan = any_nan || std::isnan(x[i]);
  }
  if (any_nan || !any_finite) {
    p.argmax[row] = -1;
    p.max[row] = p.log_sum_exp[row] = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  double sum = 0;
  for (int64_t i = 0; i < p.cols; ++i) sum += std::exp(double{x[i]} - double{x[best]});
  p.argmax[row] = static_cast<int32_t>(best);
  p.max[row] = x[best];
  p.log_sum_exp[row] =
      std::isinf(x[best]) ? x[best] : static_cast<float>(double{x[best]} + std::log(sum));
}

}  // namespace

absl::Status ReferenceRowStats(const RowStatsParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckRowStats(params));
  RunTasks(stream, params.rows, [&](int64_t row, int /*worker*/) { RowStats(params, row); });
  return absl::OkStatus();
}

}  // namespace llm
