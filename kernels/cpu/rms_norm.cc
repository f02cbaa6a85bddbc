// A task is a row.
#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/parallel.h"
#include "src/base/status_macros.h"

namespace llm::cpu {

absl::Status RmsNorm(const IsaKernels& isa, const RmsNormParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckRmsNorm(params));
  const RmsNormInput input = {params.input, params.residual, params.weight, params.eps};
  RunTasks(stream, params.output.rows,
           [&](int64_t row, int /*worker*/) { isa.rms_norm_row(input, params.output, row); });
  return absl::OkStatus();
}

}  // namespace llm::cpu
