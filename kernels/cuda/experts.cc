// Launchers of mixtures of experts, and of columns in another order.
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/expert_ops.h"
#include "src/base/status_macros.h"

namespace llm::cuda {

absl::Status MoeRoute(const MoeRouteParams& params, const CudaStream& stream) {
  const MoeRouteParams& p = params;
  LLM_RETURN_IF_ERROR(CheckMoeRoute(p));
  const RouterRule& rule = p.rule;
  if (p.num_tokens == 0) {
    // A step that is recorded has rows.
    if (stream.stream.recording != nullptr) return absl::UnimplementedError("moe_route: no rows");
    const size_t bytes = (static_cast<size_t>(rule.num_experts) + 1) * sizeof(int32_t);
    return CudaStatus("moe_route", cudaMemsetAsync(p.expert_begin, 0, bytes, stream.stream.stream));
  }
  const MoeRouteArgs args = {p.logits,
                             p.selection_bias,
                             p.num_tokens,
                             rule.num_experts,
                             rule.experts_per_token,
                             rule.score == RouterScore::kSigmoid,
                             rule.num_groups,
                             rule.groups_per_token,
                             rule.normalize,
                             rule.scale,
                             p.weights,
                             p.rows,
                             p.row_tokens,
                             p.expert_begin};
  return CudaStatus("moe_route", LaunchMoeRoute(args, stream.stream));
}

absl::Status MoeGather(const MoeGatherParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckMoeGatherShapes(params));
  if (params.output.rows == 0) return absl::OkStatus();
  const MoeGatherArgs args = {params.input, params.row_tokens.data(), params.output};
  return CudaStatus("moe_gather", LaunchMoeGather(args, stream.stream));
}

absl::Status MoeCombine(const MoeCombineParams& params, const CudaStream& stream) {
  const MoeCombineParams& p = params;
  LLM_RETURN_IF_ERROR(CheckMoeCombineShapes(p));
  if (p.num_tokens == 0) return absl::OkStatus();
  const MoeCombineArgs args = {p.input,  p.weights, p.rows,       p.experts_per_token,
                               p.shared, p.out,     p.num_tokens, p.cols};
  return CudaStatus("moe_combine", LaunchMoeCombine(args, stream.stream));
}

absl::Status Reorder(const ReorderParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckReorderShapes(params));
  if (params.rows == 0) return absl::OkStatus();
  const bool one = params.order_begin.empty();
  const ReorderArgs args = {params.from,
                            params.order,
                            params.to,
                            params.rows,
                            params.cols,
                            one ? nullptr : params.order_begin.data(),
                            one ? 1 : static_cast<int>(params.order_begin.size()) - 1};
  return CudaStatus("reorder", LaunchReorder(args, stream.stream));
}

}  // namespace llm::cuda
