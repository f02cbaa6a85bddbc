// The memory between the layers: every intermediate array of a forward pass, laid out once for the
// largest step.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/activations.h"
#include "kernels/kernel_table.h"
#include "src/model/arena.h"
#include "src/model/model_config.h"

namespace llm {

// The largest step that a decoder will be given.
struct DecoderShape {
  int max_tokens = 0;
  int max_sequences = 0;
  int max_logit_rows = 0;
  int max_context = 0;
  int num_threads = 1;
  // Linear layers read f32. Otherwise those of integer weights read int8 groups, for which room is
  // kept too, and those of BF16 weights round what they read to bf16.
  bool float_activations = false;
};

struct DecoderWorkspace {
  float* residual = nullptr;  // [max_tokens, hidden_size]
  float* update = nullptr;    // [max_tokens, hidden_size]: what the next norm adds to `residual`
  Activations normed;         // [max_tokens, hidden_size]
  std::vector<float*> rope_tables;  // [ropes], each [max_tokens, rope_dim / 2, 2]

  // These three phases share memory.
  float* q = nullptr;              // [max_tokens, num_heads, head_dim]
  float* k = nullptr;              // [max_tokens, num_kv_heads, head_dim]
  float* v = nullptr;              // [max_tokens, num_kv_heads, head_dim]
  Activations attended;            // [max_tokens, num_heads * head_dim]
  std::byte* attention = nullptr;  // attention_bytes long
  size_t attention_bytes = 0;

  float* gate = nullptr;  // [max_tokens, ffn_size]
  float* up = nullptr;    // [max_tokens, ffn_size]
  Activations gated;      // [max_tokens, ffn_size]

  float* head_residual = nullptr;  // [max_logit_rows, hidden_size]
  float* head_update = nullptr;    // [max_logit_rows, hidden_size]
  Activations head_normed;         // [max_logit_rows, hidden_size]
};

DecoderWorkspace LayOutDecoder(const ModelConfig& config, const KernelTable& kernels,
                               const DecoderShape& shape, Arena* arena);

}  // namespace llm
