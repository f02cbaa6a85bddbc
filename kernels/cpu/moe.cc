// Launchers of the small ops on rows. A task is a row.
#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/parallel.h"
#include "src/base/status_macros.h"

namespace llm::cpu {

absl::Status MoeCombine(const IsaKernels& isa, const MoeCombineParams& params,
                        const Stream& stream) {
  const MoeCombineParams& p = params;
  LLM_RETURN_IF_ERROR(CheckMoeCombine(p));
  RunTasks(stream, p.num_tokens, [&](int64_t token, int /*worker*/) {
    const CombineInput input = {
        .input = p.input,
        .weights = p.weights + token * p.experts_per_token,
        .rows = p.rows + token * p.experts_per_token,
        .num_experts = p.experts_per_token,
        .shared = p.shared != nullptr ? p.shared + token * p.cols : nullptr,
    };
    isa.combine_row(input, p.out + token * p.cols, p.cols);
  });
  return absl::OkStatus();
}

absl::Status SoftCap(const IsaKernels& isa, const SoftCapParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckSoftCap(params));
  RunTasks(stream, params.rows, [&](int64_t row, int /*worker*/) {
    isa.soft_cap_row(params.values + row * params.cols, params.cols, params.cap);
  });
  return absl::OkStatus();
}

absl::Status Quantize(const IsaKernels& isa, const QuantizeParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckQuantize(params));
  const Activations& a = params.activations;
  RunTasks(stream, a.rows,
           [&](int64_t row, int /*worker*/) { isa.quantize_row(a, row, a.values + row * a.cols); });
  return absl::OkStatus();
}

}  // namespace llm::cpu
