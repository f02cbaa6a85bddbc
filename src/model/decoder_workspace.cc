// Attention, feed-forward and head never run at the same time, so that the largest of the three
// decides.
#include "src/model/decoder_workspace.h"

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
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    workspace.rope_tables.push_back(arena->Take<float>(tokens * config.rope_dim));
  }
  const size_t mark = arena->Mark();
  LayOutAttention(config, kernels, shape, arena, &workspace);

  arena->Rewind(mark);
  workspace.gate = arena->Take<float>(tokens * config.ffn_size);
  workspace.up = arena->Take<float>(tokens * config.ffn_size);
  workspace.gated = TakeActivations(arena, tokens, config.ffn_size, shape.float_activations);

  arena->Rewind(mark);
  const int64_t rows = shape.max_logit_rows;
  workspace.head_residual = arena->Take<float>(rows * hidden);
  workspace.head_update = arena->Take<float>(rows * hidden);
  workspace.head_normed = TakeActivations(arena, rows, hidden, shape.float_activations);
  arena->Rewind(arena->peak_bytes());  // the caller's next array lies past the largest phase
  return workspace;
}

}  // namespace llm
