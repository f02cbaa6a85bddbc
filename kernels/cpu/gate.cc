// A task is a row.
#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/parallel.h"
#include "src/base/status_macros.h"

namespace llm::cpu {
namespace {

GateKind KindOf(GateActivation activation) {
  switch (activation) {
    case GateActivation::kSilu:
      return GateKind::kSilu;
    case GateActivation::kGeluTanh:
      return GateKind::kGelu;
    case GateActivation::kClampedSwiglu:
      return GateKind::kClampedSwiglu;
  }
  return GateKind::kSilu;
}

}  // namespace

absl::Status Gate(const IsaKernels& isa, const GateParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckGate(params));
  RunTasks(stream, params.output.rows, [&](int64_t row, int /*worker*/) {
    const GateInput input = {KindOf(params.activation), params.limit,
                             params.gate + row * params.input_stride,
                             params.up + row * params.input_stride};
    isa.gate_row(input, params.output, row);
  });
  return absl::OkStatus();
}

}  // namespace llm::cpu
