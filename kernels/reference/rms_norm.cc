// Two passes over a row: the sum of squares, then the results in groups of 32.
#include <algorithm>
#include <cmath>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/quantize.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

void NormRow(const RmsNormParams& params, int64_t row) {
  const int64_t cols = params.output.cols;
  const float* input = params.input != nullptr ? params.input + row * cols : nullptr;
  float* residual = params.residual != nullptr ? params.residual + row * cols : nullptr;
  if (residual != nullptr && input != nullptr) {
    for (int64_t i = 0; i < cols; ++i) residual[i] += input[i];
  }
  const float* x = residual != nullptr ? residual : input;
  double squares = 0;
  for (int64_t i = 0; i < cols; ++i) squares += double{x[i]} * double{x[i]};
  const double factor = 1 / std::sqrt(squares / static_cast<double>(cols) + double{params.eps});
  for (int64_t col = 0; col < cols; col += kActivationGroup) {
    const int64_t count = std::min<int64_t>(kActivationGroup, cols - col);
    float group[kActivationGroup];
    for (int64_t i = 0; i < count; ++i) {
      group[i] = static_cast<float>(double{x[col + i]} * factor * double{params.weight[col + i]});
    }
    ReferenceStore(params.output, row, col, group, count);
  }
}

}  // namespace

absl::Status ReferenceRmsNorm(const RmsNormParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckRmsNorm(params));
  RunTasks(stream, params.output.rows, [&](int64_t row, int /*worker*/) { NormRow(params, row); });
  return absl::OkStatus();
}

}  // namespace llm
