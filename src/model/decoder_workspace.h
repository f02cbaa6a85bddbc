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

// Of one gated feed-forward network.
struct GatedWorkspace {
  float* gate = nullptr;  // [rows, ffn_size]
  float* up = nullptr;    // [rows, ffn_size]
  Activations gated;      // [rows, ffn_size]
};

// Of a mixture of experts. A row is a token with one of its experts.
struct ExpertsWorkspace {
  float* logits = nullptr;        // [max_tokens, num_experts]
  float* weights = nullptr;       // [max_tokens, experts_per_token]
  int32_t* rows = nullptr;        // [max_tokens, experts_per_token]
  int32_t* row_tokens = nullptr;  // [max_tokens * experts_per_token]
  int32_t* begin = nullptr;       // [num_experts + 1]
  GatedWorkspace gated;
  // These two share memory.
  Activations gathered;  // [max_tokens * experts_per_token, hidden_size]
  float* out = nullptr;  // [max_tokens * experts_per_token, hidden_size]
};

// Of latent attention.
struct LatentWorkspace {
  float* kv_a = nullptr;       // [max_tokens, rank + rope_dim]
  float* latent = nullptr;     // [max_tokens, rank]
  float* q_a = nullptr;        // [max_tokens, query_rank]
  Activations q_normed;        // [max_tokens, query_rank]
  float* queries = nullptr;    // [max_tokens, num_heads, key_dim + rope_dim]
  float* heads_in = nullptr;   // [num_heads, max_tokens, the larger of key_dim and rank]
  float* heads_out = nullptr;  // [num_heads, max_tokens, the larger of rank and value_dim]
  Activations values;          // [max_tokens, num_heads * value_dim]
};

struct DecoderWorkspace {
  float* residual = nullptr;  // [max_tokens, hidden_size]
  float* update = nullptr;    // [max_tokens, hidden_size]: what the next norm adds to `residual`
  Activations normed;         // [max_tokens, hidden_size]
  Activations ordered;        // [max_tokens, the largest input], where the model has input_orders
  std::vector<float*> rope_tables;  // [ropes], each [max_tokens, rope_dim / 2, 2]

  // Attention, each feed-forward network and the head share memory.
  float* q = nullptr;              // [max_tokens, num_heads, head_dim]
  float* k = nullptr;              // [max_tokens, num_kv_heads, head_dim]
  float* v = nullptr;              // [max_tokens, num_kv_heads, head_dim]
  Activations attended;            // [max_tokens, num_heads * head_dim]
  std::byte* attention = nullptr;  // attention_bytes long
  size_t attention_bytes = 0;

  LatentWorkspace latent;

  GatedWorkspace dense;   // of max_tokens rows
  GatedWorkspace shared;  // likewise
  ExpertsWorkspace experts;

  float* head_residual = nullptr;  // [max_logit_rows, hidden_size]
  float* head_update = nullptr;    // [max_logit_rows, hidden_size]
  Activations head_normed;         // [max_logit_rows, hidden_size]
};

DecoderWorkspace LayOutDecoder(const ModelConfig& config, const KernelTable& kernels,
                               const DecoderShape& shape, Arena* arena);

}  // namespace llm
