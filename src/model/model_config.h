// What a model is, as numbers: sizes, flags, and per layer which keys it sees. Read from a file's
// header by an architecture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/gate.h"
#include "kernels/moe.h"
#include "kernels/rope.h"
#include "src/cache/kv_groups.h"
#include "src/loader/weight_source.h"

namespace llm {

// Layers of one model may turn at different speeds (Gemma 3: local and global layers).
struct RopeVariant {
  std::vector<float> inv_freq;       // [rope_dim / 2], scaling included
  std::vector<float> long_inv_freq;  // likewise, for long prompts (longrope); empty: the same
  float magnitude = 1.0f;            // multiplies cos and sin
};

struct LayerConfig {
  int window = 0;        // tokens that a query sees, itself included; 0: all
  int kv_group = 0;      // index into kv_groups
  int rope = 0;          // index into ropes
  bool experts = false;  // the feed-forward part is a mixture of experts
};

// Of the layers that are mixtures. num_experts of 0: none is.
struct ExpertsConfig {
  RouterRule router;
  int ffn_size = 0;         // of one expert
  int shared_ffn_size = 0;  // of the expert that sees all tokens; 0: there is none
};

// Attention whose keys and values are one latent vector a token, which each head expands.
struct LatentConfig {
  int rank = 0;        // of the latent vector; 0: plain attention
  int query_rank = 0;  // of the vector that queries are made from; 0: none
  int key_dim = 0;     // of a head, without the rope_dim rotated dimensions
  int value_dim = 0;   // of a head
};

// Scales of fp8 keys and values that the model was calibrated with.
struct KvScales {
  std::vector<float> keys;    // [num_layers], finite, above 0; empty: none are given
  std::vector<float> values;  // likewise
};

// Names of tensors as GGUF files have them; a layer's are "blk.<layer>.<name>.weight" (and
// ".bias").
struct TensorNames {
  const char* embedding = "token_embd";
  const char* output_norm = "output_norm";
  const char* head = "output";
  const char* rope_factors = "rope_freqs";
  const char* short_rope_factors = "rope_factors_short";
  const char* long_rope_factors = "rope_factors_long";
  const char* attention_norm = "attn_norm";
  const char* qkv = "attn_qkv";  // in the place of the next three, where the file has it
  const char* q = "attn_q";
  const char* k = "attn_k";
  const char* v = "attn_v";
  const char* o = "attn_output";
  const char* sinks = "attn_sinks";
  const char* q_a = "attn_q_a";
  const char* q_a_norm = "attn_q_a_norm";
  const char* q_b = "attn_q_b";
  const char* kv_a = "attn_kv_a_mqa";
  const char* kv_a_norm = "attn_kv_a_norm";
  const char* k_b = "attn_k_b";
  const char* v_b = "attn_v_b";
  const char* q_norm = "attn_q_norm";
  const char* k_norm = "attn_k_norm";
  const char* post_attention_norm = "post_attention_norm";
  const char* ffn_norm = "ffn_norm";
  const char* gate = "ffn_gate";
  const char* up = "ffn_up";
  const char* down = "ffn_down";
  const char* post_ffn_norm = "post_ffw_norm";
  const char* router = "ffn_gate_inp";
  const char* selection_bias = "exp_probs_b";
  const char* expert_gate = "ffn_gate_exps";
  const char* expert_up = "ffn_up_exps";
  const char* expert_down = "ffn_down_exps";
  const char* shared_gate = "ffn_gate_shexp";
  const char* shared_up = "ffn_up_shexp";
  const char* shared_down = "ffn_down_shexp";
};

struct ModelConfig {
  std::string architecture;  // "llama"
  int hidden_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;  // of latent attention: the rotated part and the latent vector, rounded up
  int ffn_size = 0;
  int vocab_size = 0;
  int context_length = 0;  // tokens that the model was trained for
  float norm_eps = 0;

  float embedding_scale = 1.0f;
  float attention_scale = 0;     // multiplies q k
  float attention_soft_cap = 0;  // 0: none
  float logit_soft_cap = 0;      // 0: none
  GateActivation activation = GateActivation::kSilu;
  float activation_limit = 0;  // of GateActivation::kClampedSwiglu
  ExpertsConfig experts;
  LatentConfig latent;
  RopePairs rope_pairs = RopePairs::kHalves;
  int rope_dim = 0;

  bool qk_norm = false;  // q and k are normed per head
  bool post_norms =
      false;  // the outputs of attention and feed-forward are normed before they are added
  bool attention_sinks = false;  // each head has one
  bool may_have_biases = false;  // linear layers take a bias where the file has one
  bool fused_gate_up = false;    // `up` has the rows of gate, then its own
  bool tied_embeddings = false;  // the head is the embedding table
  bool rope_factors = false;  // the file has a tensor that divides inv_freq; LoadModel applies it

  // Prompts of more tokens turn by long_inv_freq, from their first token on; 0: none does.
  int long_rope_above = 0;

  KvScales kv_scales;

  TensorNames names;
  std::vector<RopeVariant> ropes;
  std::vector<LayerConfig> layers;     // [num_layers]
  std::vector<KvGroupSpec> kv_groups;  // full attention first

  int q_size() const { return num_heads * head_dim; }
  int kv_size() const { return num_kv_heads * head_dim; }
};

// Reads nothing but the header. NOT_FOUND for a missing key, INVALID_ARGUMENT for an impossible
// value, UNIMPLEMENTED for an architecture, a key in the architecture's namespace, or a value of
// one that this library does not know: all by name.
absl::StatusOr<ModelConfig> ReadModelConfig(const WeightSource& source);

}  // namespace llm
