// DeepSeek V2 and V3: attention over a latent vector per token, shared and routed experts behind
// some dense layers. DeepSeek-AI, 2024.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/model/architectures/architecture.h"
#include "src/model/architectures/hub_models.h"

namespace llm {
namespace {

constexpr int kMaxRank = 1 << 14;
constexpr int kMaxHeadDim = 1 << 10;

// A key that follows from others, where it is there.
void RequireValue(ConfigReader* reader, const char* key, int value) {
  const int stated = reader->SizeOr(key, 1 << 20, value);
  if (stated == value) return;
  reader->Fail(absl::UnimplementedError(absl::StrCat(
      "key ", reader->FullName(key), ": ", stated, ", expected ", value, " of latent attention")));
}

// The cache holds one head for each token: its rotated part, the latent vector, zeros up to whole
// registers.
void ReadLatent(ConfigReader* reader, ModelConfig* config) {
  LatentConfig& latent = config->latent;
  latent.rank = reader->Size("attention.kv_lora_rank", kMaxRank);
  latent.query_rank = reader->CountOr("attention.q_lora_rank", kMaxRank, 0);
  config->rope_dim = reader->Size("rope.dimension_count", kMaxHeadDim);
  const int key_length = reader->Size("attention.key_length_mla", kMaxHeadDim);
  latent.value_dim = reader->Size("attention.value_length_mla", kMaxHeadDim);
  latent.key_dim = key_length - config->rope_dim;
  if (latent.key_dim < 1) {
    reader->Fail(absl::InvalidArgumentError(
        absl::StrCat("key ", reader->FullName("attention.key_length_mla"), ": ", key_length,
                     " dimensions, of which ", config->rope_dim, " are rotated")));
    latent.key_dim = 1;
  }
  RequireValue(reader, "attention.head_count_kv", 1);
  RequireValue(reader, "attention.key_length", latent.rank + config->rope_dim);
  RequireValue(reader, "attention.value_length", latent.rank);
  config->num_kv_heads = 1;
  config->head_dim = RoundUp(latent.rank + config->rope_dim, 16);
  config->attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(key_length)));
}

// The lengthened context softens scores where the key for it is there, and else the angles (as
// yarn does by itself).
void ApplyYarn(ConfigReader* reader, const RopeScaling& scaling, ModelConfig* config) {
  const float multiplier = reader->FloatOr("rope.scaling.yarn_log_multiplier", 0.0f);
  if (scaling.type != RopeScaling::kYarn || multiplier == 0) return;
  const double log_factor = std::log(std::max(1.0, double{scaling.factor}));
  const double magnitude = 1 + double{multiplier} * log_factor;
  config->attention_scale *= static_cast<float>(magnitude * magnitude);
  config->ropes[0].magnitude = 1.0f;
}

}  // namespace

void ConfigureDeepseek2(ConfigReader* reader, ModelConfig* config) {
  ReadLayerSizes(reader, config);
  ReadLatent(reader, config);
  config->rope_pairs = RopePairs::kAdjacent;
  const float base = reader->FloatOr("rope.freq_base", 10000.0f);
  const RopeScaling scaling = ReadRopeScaling(reader);
  config->ropes = {MakeRope(config->rope_dim, base, scaling)};
  ApplyYarn(reader, scaling, config);
  ReadExperts(reader, {}, config);
  reader->Harmless("vocab_size");
}

namespace {

constexpr HubTensor kTensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"},
    {"model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"},
    {"model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {"model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_k_b.weight", HubForm::kKeyRows},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_v_b.weight", HubForm::kValueRows},
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.mlp.experts.{}.gate_proj", "blk.{}.ffn_gate_exps", HubForm::kExpert},
    {"model.layers.{}.mlp.experts.{}.up_proj", "blk.{}.ffn_up_exps", HubForm::kExpert},
    {"model.layers.{}.mlp.experts.{}.down_proj", "blk.{}.ffn_down_exps", HubForm::kExpert},
    {"model.layers.{}.mlp.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp"},
    {"model.layers.{}.mlp.shared_experts.up_proj", "blk.{}.ffn_up_shexp"},
    {"model.layers.{}.mlp.shared_experts.down_proj", "blk.{}.ffn_down_shexp"},
};

constexpr HubKey kKeys[] = {
    {"kv_lora_rank", "attention.kv_lora_rank", HubValue::kInt},
    {"q_lora_rank", "attention.q_lora_rank", HubValue::kInt},
    {"qk_rope_head_dim", "rope.dimension_count", HubValue::kInt},
    {"v_head_dim", "attention.value_length_mla", HubValue::kInt},
    {"moe_intermediate_size", "expert_feed_forward_length", HubValue::kInt},
    {"n_routed_experts", "expert_count", HubValue::kInt},
    {"n_shared_experts", "expert_shared_count", HubValue::kInt},
    {"num_experts_per_tok", "expert_used_count", HubValue::kInt},
    {"first_k_dense_replace", "leading_dense_block_count", HubValue::kInt},
    {"routed_scaling_factor", "expert_weights_scale", HubValue::kFloat},
    {"norm_topk_prob", "expert_weights_norm", HubValue::kBool},
};

constexpr const char* kHarmless[] = {
    "aux_loss_alpha",      "auto_map", "ep_size", "seq_aux", "output_router_logits",
    "router_aux_loss_coef"};

// Far above any model there is, so that sums of two fit.
int64_t Dimension(HubConfig* config, const char* key) {
  const int64_t value = config->Int(key);
  if (value >= 1 && value <= kMaxRank) return value;
  config->RefuseValue(key, absl::StrCat(value, " is not in 1 to ", kMaxRank));
  return 1;
}

void MapLatent(HubConfig* config, HubExtras* extras) {
  const int64_t rank = Dimension(config, "kv_lora_rank");
  const int64_t rope_dim = Dimension(config, "qk_rope_head_dim");
  extras->key_rows = Dimension(config, "qk_nope_head_dim");
  extras->value_rows = Dimension(config, "v_head_dim");
  extras->Set("attention.key_length_mla", "qk_nope_head_dim", extras->key_rows + rope_dim);
  config->RequireNumber("qk_head_dim", static_cast<double>(extras->key_rows + rope_dim));
  config->RequireNumber("head_dim", static_cast<double>(rope_dim));
  config->RequireNumber("num_key_value_heads",
                        static_cast<double>(config->Int("num_attention_heads")));
  // The cache has one head, of the latent vector and the rotated part.
  extras->Set("attention.head_count_kv", "kv_lora_rank", int64_t{1});
  extras->Set("attention.key_length", "kv_lora_rank", rank + rope_dim);
  extras->Set("attention.value_length", "kv_lora_rank", rank);
}

void MapGroups(HubConfig* config, HubExtras* extras) {
  extras->Set("expert_group_count", "n_group", config->Int("n_group"));
  extras->Set("expert_group_used_count", "topk_group", config->Int("topk_group"));
}

void MapShared(HubConfig* config, HubExtras* extras) {
  config->RequireText("hidden_act", "silu");
  config->RequireBool("attention_bias", false);
  config->RequireBool("mlp_bias", false);
  config->RequireBool("rope_interleave", true);
  config->RequireNumber("moe_layer_freq", 1);
  MapLatent(config, extras);
  MapRope(config, extras);
}

void MapV2(HubConfig* config, HubExtras* extras) {
  MapShared(config, extras);
  config->RequireText("scoring_func", "softmax");
  config->RequireBool("norm_topk_prob", false);
  extras->Set("expert_gating_func", "scoring_func", int64_t{1});
  const std::string method = config->TextOr("topk_method", "greedy");
  if (method == "group_limited_greedy") return MapGroups(config, extras);
  config->RequireText("topk_method", "greedy");
  config->Harmless("n_group");
  config->Harmless("topk_group");
}

void MapV3(HubConfig* config, HubExtras* extras) {
  MapShared(config, extras);
  config->RequireText("scoring_func", "sigmoid");
  config->RequireText("topk_method", "noaux_tc");
  extras->Set("expert_gating_func", "scoring_func", int64_t{2});
  extras->companions["ffn_gate_inp"] = "exp_probs_b.bias";
  extras->num_drafting_layers = config->IntOr("num_nextn_predict_layers", 0);
  MapGroups(config, extras);
}

}  // namespace

const HubModel kHubDeepseekV2 = {.model_type = "deepseek_v2",
                                 .architecture = "deepseek2",
                                 .keys = kKeys,
                                 .harmless = kHarmless,
                                 .tensors = kTensors,
                                 .map = MapV2};

const HubModel kHubDeepseekV3 = {.model_type = "deepseek_v3",
                                 .architecture = "deepseek2",
                                 .keys = kKeys,
                                 .harmless = kHarmless,
                                 .tensors = kTensors,
                                 .map = MapV3};

}  // namespace llm
