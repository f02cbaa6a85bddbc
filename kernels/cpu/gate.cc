// A task is a row.
#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/parallel.h"
#include "src/base/status_macros.h"

namespace llm::cpu {

absl::Status Gate(const IsaKernels& isa, const GateParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckGate(params));
  RunTasks(stream, params.output.rows, [&](int64_t row, int /*worker*/) {
    const GateInput input = {params.activation == GateActivation::kGeluTanh,
                             params.gate + row * params.input_stride,
                             params.up + row * params.input_stride};
    isa.gate_row(input, params.output, row);
  });
  return absl::OkStatus();
}

}  // namespace llm::cpu
