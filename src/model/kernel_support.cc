// Before weights are read: what is missing must show when a model opens, never in a step.
#include "src/model/kernel_support.h"

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status Need(bool has, const char* op, const char* what, const KernelTable& kernels) {
  if (has) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("kernels ", kernels.name, ": no ", op, " yet, which ", what, " needs"));
}

}  // namespace

absl::Status CheckKernels(const TensorList& list, const ModelConfig& config,
                          const KernelTable& kernels) {
  if (config.experts.router.num_experts > 0) {
    const char* what = "a model with experts";
    LLM_RETURN_IF_ERROR(Need(kernels.moe_route != nullptr, "moe_route", what, kernels));
    LLM_RETURN_IF_ERROR(Need(kernels.moe_gather != nullptr, "moe_gather", what, kernels));
    LLM_RETURN_IF_ERROR(Need(kernels.moe_combine != nullptr, "moe_combine", what, kernels));
    LLM_RETURN_IF_ERROR(Need(kernels.expert_linear != nullptr, "expert_linear", what, kernels));
  }
  if (config.latent.rank > 0) {
    LLM_RETURN_IF_ERROR(
        Need(kernels.expert_linear != nullptr, "expert_linear", "latent attention", kernels));
  }
  if (config.input_orders) {
    LLM_RETURN_IF_ERROR(
        Need(kernels.reorder != nullptr, "reorder", "a checkpoint with desc_act", kernels));
  }
  if (kernels.check_format == nullptr) return absl::OkStatus();
  for (const TensorSlot& slot : list.slots) {
    if (slot.matrix == nullptr) continue;
    const absl::Status status = kernels.check_format(slot.matrix->format);
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat("tensor ", slot.tensor->name, ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace llm
