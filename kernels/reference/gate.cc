// act(gate) * up in double, rounded once.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/quantize.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

double Gated(const GateParams& params, double gate, double up) {
  switch (params.activation) {
    case GateActivation::kSilu:
      return gate / (1 + std::exp(-gate)) * up;
    case GateActivation::kGeluTanh: {
      const double inner = std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate);
      return 0.5 * gate * (1 + std::tanh(inner)) * up;
    }
    case GateActivation::kClampedSwiglu: {
      const double limit = double{params.limit};
      const double x = gate > limit ? limit : gate;  // NaN stays
      const double clamped = up > limit ? limit : up < -limit ? -limit : up;
      return x / (1 + std::exp(-1.702 * x)) * (clamped + 1);
    }
  }
  return 0;
}

void GateRow(const GateParams& params, int64_t row) {
  const int64_t cols = params.output.cols;
  const float* gate = params.gate + row * params.input_stride;
  const float* up = params.up + row * params.input_stride;
  for (int64_t col = 0; col < cols; col += kActivationGroup) {
    const int64_t count = std::min<int64_t>(kActivationGroup, cols - col);
    float group[kActivationGroup];
    for (int64_t i = 0; i < count; ++i) {
      group[i] = static_cast<float>(Gated(params, double{gate[col + i]}, double{up[col + i]}));
    }
    ReferenceStore(params.output, row, col, group, count);
  }
}

}  // namespace

absl::Status ReferenceGate(const GateParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckGate(params));
  RunTasks(stream, params.output.rows, [&](int64_t row, int /*worker*/) { GateRow(params, row); });
  return absl::OkStatus();
}

}  // namespace llm
