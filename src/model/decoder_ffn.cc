// The feed-forward half of a layer: one network for all tokens, or a mixture of experts. Experts
// see their tokens together, so that each expert's weights are read once a step.
#include "src/base/status_macros.h"
#include "src/model/decoder.h"

namespace llm {
namespace {

ExpertOutput ToExperts(const ExpertWeight& expert, int64_t outputs, float* out) {
  return {.weight = expert.weight, .outputs = outputs, .bias = expert.bias, .out = out};
}

}  // namespace

absl::Status Decoder::FeedForward(size_t layer, int64_t rows) {
  const LayerWeights& weights = model_.weights.layers[layer];
  const DecoderWorkspace& ws = workspace_;
  const Activations normed =
      Select(ws.normed, Produced(weights.gate.order, forms_[layer].feed_forward), rows);
  LLM_RETURN_IF_ERROR(kernels_.rms_norm({.input = ws.update,
                                         .residual = ws.residual,
                                         .weight = weights.ffn_norm,
                                         .eps = config_.norm_eps,
                                         .output = normed},
                                        Op("ffn_norm")));
  if (config_.layers[layer].experts) {
    LLM_RETURN_IF_ERROR(Experts(layer, rows));
  } else {
    LLM_RETURN_IF_ERROR(Gated({weights.gate, weights.up, weights.down}, ws.dense,
                              forms_[layer].feed_forward, forms_[layer].down, rows));
  }
  return PostNorm(weights.post_ffn_norm, rows);
}

absl::Status Decoder::Gated(const GatedWeights& weights, const GatedWorkspace& workspace,
                            Forms gate_up_forms, Forms down_forms, int64_t rows) {
  LLM_ASSIGN_OR_RETURN(const Activations normed,
                       InOrder(weights.gate.order, workspace_.normed, gate_up_forms, rows));
  const LinearOutput gate_up[] = {To(weights.gate, workspace.gate), To(weights.up, workspace.up)};
  LLM_RETURN_IF_ERROR(kernels_.linear(LinearOf(normed, gate_up), Op("gate_up")));
  const Activations gated = Select(workspace.gated, Produced(weights.down.order, down_forms), rows);
  LLM_RETURN_IF_ERROR(kernels_.gate({.activation = config_.activation,
                                     .gate = workspace.gate,
                                     .up = workspace.up,
                                     .input_stride = gated.cols,
                                     .limit = config_.activation_limit,
                                     .output = gated},
                                    Op("gate")));
  LLM_ASSIGN_OR_RETURN(const Activations read,
                       InOrder(weights.down.order, workspace.gated, down_forms, rows));
  const LinearOutput down[] = {To(weights.down, workspace_.update)};
  return kernels_.linear(LinearOf(read, down), Op("down"));
}

absl::Status Decoder::Experts(size_t layer, int64_t rows) {
  const ExpertsWeights& weights = model_.weights.layers[layer].experts;
  const ExpertsWorkspace& ws = workspace_.experts;
  const bool has_shared = config_.experts.shared_ffn_size > 0;
  if (has_shared) {
    LLM_RETURN_IF_ERROR(Gated({weights.shared_gate, weights.shared_up, weights.shared_down},
                              workspace_.shared, forms_[layer].shared_gate_up,
                              forms_[layer].shared_down, rows));
  }
  const Activations normed = Select(workspace_.normed, {.values = true}, rows);
  // In f32 whatever else is rounded: experts change where scores are close.
  const LinearOutput router[] = {To(weights.router, ws.logits)};
  LLM_RETURN_IF_ERROR(kernels_.linear({.activations = normed, .outputs = router}, Op("router")));
  LLM_RETURN_IF_ERROR(kernels_.moe_route({.rule = config_.experts.router,
                                          .logits = ws.logits,
                                          .num_tokens = rows,
                                          .selection_bias = weights.selection_bias,
                                          .weights = ws.weights,
                                          .rows = ws.rows,
                                          .row_tokens = ws.row_tokens,
                                          .expert_begin = ws.begin},
                                         Op("route")));
  LLM_RETURN_IF_ERROR(RunExperts(layer, rows));
  const int experts_per_token = config_.experts.router.experts_per_token;
  return kernels_.moe_combine({.input = ws.out,
                               .num_rows = rows * experts_per_token,
                               .weights = ws.weights,
                               .rows = ws.rows,
                               .experts_per_token = experts_per_token,
                               .shared = has_shared ? workspace_.update : nullptr,
                               .out = workspace_.update,
                               .num_tokens = rows,
                               .cols = config_.hidden_size},
                              Op("combine"));
}

absl::Status Decoder::RunExperts(size_t layer, int64_t tokens) {
  const ExpertsWeights& weights = model_.weights.layers[layer].experts;
  const ExpertsWorkspace& ws = workspace_.experts;
  const RouterRule& rule = config_.experts.router;
  const int64_t ffn = config_.experts.ffn_size;
  const int64_t rows = tokens * rule.experts_per_token;
  const absl::Span<const int32_t> begin(ws.begin, static_cast<size_t>(rule.num_experts) + 1);
  const Forms read = Produced(weights.gate.order, forms_[layer].expert_gate_up);
  const Activations normed = Select(workspace_.normed, read, tokens);
  const Activations gathered = Select(ws.gathered, read, rows);
  LLM_RETURN_IF_ERROR(kernels_.moe_gather({.input = normed,
                                           .row_tokens = {ws.row_tokens, static_cast<size_t>(rows)},
                                           .output = gathered},
                                          Op("gather")));
  LLM_ASSIGN_OR_RETURN(
      const Activations ordered,
      InOrder(weights.gate.order, ws.gathered, forms_[layer].expert_gate_up, rows, begin));
  const ExpertOutput gate_up[] = {ToExperts(weights.gate, ffn, ws.gated.gate),
                                  ToExperts(weights.up, ffn, ws.gated.up)};
  LLM_RETURN_IF_ERROR(
      kernels_.expert_linear(ExpertsOf(ordered, begin, gate_up), Op("expert_gate_up")));
  const Activations gated =
      Select(ws.gated.gated, Produced(weights.down.order, forms_[layer].expert_down), rows);
  LLM_RETURN_IF_ERROR(kernels_.gate({.activation = config_.activation,
                                     .gate = ws.gated.gate,
                                     .up = ws.gated.up,
                                     .input_stride = ffn,
                                     .limit = config_.activation_limit,
                                     .output = gated},
                                    Op("gate")));
  LLM_ASSIGN_OR_RETURN(
      const Activations read_by_down,
      InOrder(weights.down.order, ws.gated.gated, forms_[layer].expert_down, rows, begin));
  const ExpertOutput down[] = {ToExperts(weights.down, config_.hidden_size, ws.out)};
  return kernels_.expert_linear(ExpertsOf(read_by_down, begin, down), Op("expert_down"));
}

}  // namespace llm
