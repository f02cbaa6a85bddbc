// Attention, feed-forward and head never run at the same time, so that the largest of the three
// decides.
#include "src/model/decoder_workspace.h"

#include <algorithm>

#include "src/base/math.h"

namespace llm {
namespace {

Activations TakeActivations(Arena* arena, int64_t rows, int64_t cols, bool float_only) {
  Activations result;
  result.rows = rows;
  result.cols = cols;
  result.values = arena->Take<float>(rows * cols);
  if (float_only || cols % kActivationGroup != 0)
    return result;  // no integer weight has such columns
  result.quants = arena->Take<int8_t>(rows * cols);
  result.scales = arena->Take<float>(rows * (cols / kActivationGroup));
  result.sums = arena->Take<int16_t>(rows * (cols / kActivationSumGroup));
  return result;
}

LatentWorkspace LayOutLatent(const ModelConfig& config, const DecoderShape& shape, Arena* arena) {
  const LatentConfig& latent = config.latent;
  const int64_t tokens = shape.max_tokens;
  const int64_t head_rows = tokens * config.num_heads;
  LatentWorkspace workspace;
  workspace.kv_a = arena->Take<float>(tokens * (latent.rank + config.rope_dim));
  workspace.latent = arena->Take<float>(tokens * latent.rank);
  if (latent.query_rank > 0) {
    workspace.q_a = arena->Take<float>(tokens * latent.query_rank);
    workspace.q_normed = TakeActivations(arena, tokens, latent.query_rank, shape.float_activations);
  }
  workspace.queries = arena->Take<float>(head_rows * (latent.key_dim + config.rope_dim));
  workspace.heads_in = arena->Take<float>(head_rows * std::max(latent.key_dim, latent.rank));
  workspace.heads_out = arena->Take<float>(head_rows * std::max(latent.rank, latent.value_dim));
  workspace.values = TakeActivations(arena, tokens, int64_t{config.num_heads} * latent.value_dim,
                                     shape.float_activations);
  return workspace;
}

void LayOutAttention(const ModelConfig& config, const KernelTable& kernels,
                     const DecoderShape& shape, Arena* arena, DecoderWorkspace* workspace) {
  const int64_t tokens = shape.max_tokens;
  workspace->q = arena->Take<float>(tokens * config.q_size());
  workspace->k = arena->Take<float>(tokens * config.kv_size());
  workspace->v = arena->Take<float>(tokens * config.kv_size());
  workspace->attended = TakeActivations(arena, tokens, config.q_size(), shape.float_activations);
  workspace->attention_bytes =
      kernels.attention_workspace_bytes({.max_tokens = shape.max_tokens,
                                         .max_sequences = shape.max_sequences,
                                         .max_context = shape.max_context,
                                         .num_heads = config.num_heads,
                                         .head_dim = config.head_dim,
                                         .num_threads = shape.num_threads});
  workspace->attention = arena->Take<std::byte>(static_cast<int64_t>(workspace->attention_bytes));
  if (config.latent.rank > 0) workspace->latent = LayOutLatent(config, shape, arena);
}

GatedWorkspace LayOutGated(int64_t rows, int64_t ffn_size, bool float_only, Arena* arena) {
  GatedWorkspace workspace;
  workspace.gate = arena->Take<float>(rows * ffn_size);
  workspace.up = arena->Take<float>(rows * ffn_size);
  workspace.gated = TakeActivations(arena, rows, ffn_size, float_only);
  return workspace;
}

ExpertsWorkspace LayOutExperts(const ModelConfig& config, const DecoderShape& shape, Arena* arena) {
  const RouterRule& router = config.experts.router;
  const int64_t tokens = shape.max_tokens;
  const int64_t rows = tokens * router.experts_per_token;
  ExpertsWorkspace workspace;
  workspace.logits = arena->Take<float>(tokens * router.num_experts);
  workspace.weights = arena->Take<float>(rows);
  workspace.rows = arena->Take<int32_t>(rows);
  workspace.row_tokens = arena->Take<int32_t>(rows);
  workspace.begin = arena->Take<int32_t>(router.num_experts + 1);
  workspace.gated = LayOutGated(rows, config.experts.ffn_size, shape.float_activations, arena);
  const size_t mark = arena->Mark();
  workspace.gathered = TakeActivations(arena, rows, config.hidden_size, shape.float_activations);
  arena->Rewind(mark);
  workspace.out = arena->Take<float>(rows * config.hidden_size);
  return workspace;
}

}  // namespace

DecoderWorkspace LayOutDecoder(const ModelConfig& config, const KernelTable& kernels,
                               const DecoderShape& shape, Arena* arena) {
  const int64_t tokens = shape.max_tokens;
  const int64_t hidden = config.hidden_size;
  DecoderWorkspace workspace;
  workspace.residual = arena->Take<float>(tokens * hidden);
  workspace.update = arena->Take<float>(tokens * hidden);
  workspace.normed = TakeActivations(arena, tokens, hidden, shape.float_activations);
  if (config.input_orders) {
    const int64_t largest = std::max({hidden, int64_t{config.q_size()}, int64_t{config.ffn_size}});
    workspace.ordered = TakeActivations(arena, tokens, RoundUp<int64_t>(largest, kActivationGroup),
                                        shape.float_activations);
  }
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    workspace.rope_tables.push_back(arena->Take<float>(tokens * config.rope_dim));
  }
  const size_t mark = arena->Mark();
  LayOutAttention(config, kernels, shape, arena, &workspace);

  arena->Rewind(mark);
  workspace.dense = LayOutGated(tokens, config.ffn_size, shape.float_activations, arena);

  if (config.experts.router.num_experts > 0) {
    const int64_t shared = config.experts.shared_ffn_size;
    arena->Rewind(mark);
    if (shared > 0) {
      workspace.shared = LayOutGated(tokens, shared, shape.float_activations, arena);
    }
    arena->Rewind(mark);
    workspace.experts = LayOutExperts(config, shape, arena);
  }

  arena->Rewind(mark);
  const int64_t rows = shape.max_logit_rows;
  workspace.head_residual = arena->Take<float>(rows * hidden);
  workspace.head_update = arena->Take<float>(rows * hidden);
  workspace.head_normed = TakeActivations(arena, rows, hidden, shape.float_activations);
  arena->Rewind(arena->peak_bytes());  // the caller's next array lies past the largest phase
  return workspace;
}

}  // namespace llm
