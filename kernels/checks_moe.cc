// Checks of the ops on experts and plain rows. Row indices are looked at one by one, since they
// become addresses.
#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

}  // namespace

absl::Status CheckRouterRule(const RouterRule& rule) {
  if (rule.num_experts < 1 || rule.num_experts > kMaxExperts || rule.experts_per_token < 1) {
    return Invalid("router: ", rule.experts_per_token, " of ", rule.num_experts,
                   " experts, at most ", kMaxExperts);
  }
  if (rule.num_groups < 1 || rule.num_experts % rule.num_groups != 0 || rule.groups_per_token < 1 ||
      rule.groups_per_token > rule.num_groups) {
    return Invalid("router: ", rule.groups_per_token, " of ", rule.num_groups, " groups of ",
                   rule.num_experts, " experts");
  }
  const int eligible = rule.num_experts / rule.num_groups * rule.groups_per_token;
  if (rule.experts_per_token > eligible) {
    return Invalid("router: ", rule.experts_per_token, " experts a token, ", eligible,
                   " to choose from");
  }
  if (rule.score != RouterScore::kSoftmax && rule.score != RouterScore::kSigmoid) {
    return Invalid("router: unknown score ", static_cast<int32_t>(rule.score));
  }
  return absl::OkStatus();
}

absl::Status CheckMoeRoute(const MoeRouteParams& params) {
  const MoeRouteParams& p = params;
  LLM_RETURN_IF_ERROR(CheckRouterRule(p.rule));
  if (p.num_tokens < 0 || p.num_tokens > INT32_MAX / p.rule.experts_per_token) {
    return Invalid("moe_route: ", p.num_tokens, " tokens of ", p.rule.experts_per_token,
                   " experts");
  }
  if (p.expert_begin == nullptr ||
      (p.num_tokens > 0 && (p.logits == nullptr || p.weights == nullptr || p.rows == nullptr ||
                            p.row_tokens == nullptr))) {
    return Invalid("moe_route: logits or an output is null");
  }
  return absl::OkStatus();
}

absl::Status CheckMoeGatherShapes(const MoeGatherParams& params) {
  const MoeGatherParams& p = params;
  LLM_RETURN_IF_ERROR(CheckActivations("moe_gather", p.input));
  LLM_RETURN_IF_ERROR(CheckActivations("moe_gather", p.output));
  if (p.output.cols != p.input.cols || p.output.rows != static_cast<int64_t>(p.row_tokens.size())) {
    return Invalid("moe_gather: output is [", p.output.rows, ", ", p.output.cols, "], expected [",
                   p.row_tokens.size(), ", ", p.input.cols, "]");
  }
  if ((p.output.values != nullptr && p.input.values == nullptr) ||
      (p.output.quants != nullptr && p.input.quants == nullptr)) {
    return Invalid("moe_gather: the input lacks a form that the output wants");
  }
  return absl::OkStatus();
}

absl::Status CheckMoeGather(const MoeGatherParams& params) {
  const MoeGatherParams& p = params;
  LLM_RETURN_IF_ERROR(CheckMoeGatherShapes(p));
  for (size_t i = 0; i < p.row_tokens.size(); ++i) {
    if (p.row_tokens[i] < 0 || p.row_tokens[i] >= p.input.rows) {
      return Invalid("moe_gather: row ", i, " is token ", p.row_tokens[i], " of ", p.input.rows);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMoeCombineShapes(const MoeCombineParams& params) {
  const MoeCombineParams& p = params;
  if (p.num_tokens < 0 || p.cols < 1 || p.experts_per_token < 1) {
    return Invalid("moe_combine: ", p.num_tokens, " tokens of ", p.experts_per_token, " experts, ",
                   p.cols, " columns");
  }
  if (p.num_tokens == 0) return absl::OkStatus();
  if (p.input == nullptr || p.weights == nullptr || p.rows == nullptr || p.out == nullptr) {
    return Invalid("moe_combine: input, weights, rows or out is null");
  }
  return absl::OkStatus();
}

absl::Status CheckMoeCombine(const MoeCombineParams& params) {
  const MoeCombineParams& p = params;
  LLM_RETURN_IF_ERROR(CheckMoeCombineShapes(p));
  for (int64_t i = 0; i < p.num_tokens * p.experts_per_token; ++i) {
    if (p.rows[i] < 0 || p.rows[i] >= p.num_rows) {
      return Invalid("moe_combine: choice ", i, " is row ", p.rows[i], " of ", p.num_rows);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckExpertLinearShapes(const ExpertLinearParams& params) {
  const ExpertLinearParams& p = params;
  const int64_t num_experts = NumExperts(p);
  if (num_experts < 1 || (p.expert_begin.empty() && p.activations.rows % num_experts != 0)) {
    return Invalid("expert_linear: ", p.activations.rows, " rows for ", num_experts, " experts");
  }
  for (const ExpertOutput& output : p.outputs) {
    if (output.outputs < 1 || output.outputs % kPackTileRows != 0 ||
        output.weight.rows != num_experts * output.outputs) {
      return Invalid("expert_linear: a weight of ", output.weight.rows, " rows for ", num_experts,
                     " experts of ", output.outputs, " outputs");
    }
    const LinearOutput whole = {.weight = output.weight,
                                .bias = output.bias,
                                .out = output.out,
                                .out_stride = output.weight.rows};
    LLM_RETURN_IF_ERROR(
        CheckLinear({.activations = p.activations, .outputs = absl::MakeConstSpan(&whole, 1)}));
  }
  return absl::OkStatus();
}

absl::Status CheckExpertLinear(const ExpertLinearParams& params) {
  const ExpertLinearParams& p = params;
  LLM_RETURN_IF_ERROR(CheckExpertLinearShapes(p));
  if (p.expert_begin.empty()) return absl::OkStatus();
  if (p.expert_begin[0] != 0 || p.expert_begin.back() != p.activations.rows) {
    return Invalid("expert_linear: expert_begin does not cover ", p.activations.rows, " rows");
  }
  for (size_t e = 0; e + 1 < p.expert_begin.size(); ++e) {
    if (p.expert_begin[e] > p.expert_begin[e + 1]) {
      return Invalid("expert_linear: expert ", e, " ends before it begins");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCopyBlocks(const CopyBlocksParams& params) {
  if (params.outer < 0 || params.inner < 0 || params.cols < 0) {
    return Invalid("copy_blocks: [", params.outer, ", ", params.inner, ", ", params.cols, "]");
  }
  if (params.to == nullptr && params.outer * params.inner * params.cols > 0) {
    return Invalid("copy_blocks: to is null");
  }
  return absl::OkStatus();
}

absl::Status CheckReorderShapes(const ReorderParams& params) {
  const ReorderParams& p = params;
  if (p.rows < 0 || p.cols < 1) return Invalid("reorder: [", p.rows, ", ", p.cols, "]");
  if (p.from == nullptr || p.to == nullptr || p.order == nullptr) {
    return Invalid("reorder: from, to or order is null");
  }
  return absl::OkStatus();
}

// The order comes out of a file: a few thousand comparisons beside a matrix product.
absl::Status CheckReorder(const ReorderParams& params) {
  const ReorderParams& p = params;
  LLM_RETURN_IF_ERROR(CheckReorderShapes(p));
  for (int64_t i = 0; i < p.cols; ++i) {
    if (p.order[i] >= 0 && p.order[i] < static_cast<float>(p.cols)) continue;
    return Invalid("reorder: column ", i, " comes from column ", p.order[i], " of ", p.cols);
  }
  return absl::OkStatus();
}

absl::Status CheckQuantize(const QuantizeParams& params) {
  LLM_RETURN_IF_ERROR(CheckActivations("quantize", params.activations));
  if (params.activations.values == nullptr || params.activations.quants == nullptr) {
    return Invalid("quantize: values or quants are null");
  }
  return absl::OkStatus();
}

absl::Status CheckSoftCap(const SoftCapParams& params) {
  if (params.rows < 0 || params.cols < 1 || !(params.cap > 0)) {
    return Invalid("soft_cap: [", params.rows, ", ", params.cols, "] with cap ", params.cap);
  }
  if (params.rows > 0 && params.values == nullptr) return Invalid("soft_cap: values are null");
  return absl::OkStatus();
}

}  // namespace llm
