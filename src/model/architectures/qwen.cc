// Qwen 2, 2.5 and 3: as Llama, but with biases on q, k and v (2), or with normed q and k (3), and
// experts (3 MoE). Yang et al., 2024 and 2025.
#include "src/model/architectures/architecture.h"
#include "src/model/architectures/hub_models.h"

namespace llm {
namespace {

void Configure(ConfigReader* reader, ModelConfig* config) {
  ReadSizes(reader, config);
  config->rope_pairs = RopePairs::kHalves;
  const float base = reader->FloatOr("rope.freq_base", 10000.0f);
  config->ropes = {MakeRope(config->rope_dim, base, ReadRopeScaling(reader))};
  ReadWindows(reader, 0, config);
  reader->Harmless("vocab_size");
}

}  // namespace

void ConfigureQwen2(ConfigReader* reader, ModelConfig* config) {
  Configure(reader, config);
  config->may_have_biases = true;
}

void ConfigureQwen3(ConfigReader* reader, ModelConfig* config) {
  Configure(reader, config);
  config->may_have_biases = true;
  config->qk_norm = true;
}

void ConfigureQwen3Moe(ConfigReader* reader, ModelConfig* config) {
  ConfigureQwen3(reader, config);
  ReadExperts(reader, {.normalize = true}, config);
}

namespace {

constexpr const char* kHarmless[] = {"max_window_layers", "sliding_window"};  // no windows are used

constexpr HubTensor kTensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
};

void Map(HubConfig* config, HubExtras* extras) {
  config->RequireText("hidden_act", "silu");
  config->RequireBool("use_sliding_window", false);
  config->RequireAll("layer_types", "full_attention");
  MapRope(config, extras);
}

void MapQwen2(HubConfig* config, HubExtras* extras) {
  Map(config, extras);
  extras->biases.insert({"attn_q", "attn_k", "attn_v"});
}

void MapQwen3(HubConfig* config, HubExtras* extras) {
  Map(config, extras);
  if (config->BoolOr("attention_bias", false)) {
    extras->biases.insert({"attn_q", "attn_k", "attn_v", "attn_output"});
  }
}

constexpr HubKey kMoeKeys[] = {
    {"moe_intermediate_size", "expert_feed_forward_length", HubValue::kInt},
    {"num_experts_per_tok", "expert_used_count", HubValue::kInt},
    {"norm_topk_prob", "expert_weights_norm", HubValue::kBool},
};

constexpr const char* kMoeHarmless[] = {"max_window_layers", "sliding_window",
                                        "output_router_logits", "router_aux_loss_coef"};

constexpr HubTensor kMoeTensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.experts.{}.gate_proj", "blk.{}.ffn_gate_exps", HubForm::kExpert},
    {"model.layers.{}.mlp.experts.{}.up_proj", "blk.{}.ffn_up_exps", HubForm::kExpert},
    {"model.layers.{}.mlp.experts.{}.down_proj", "blk.{}.ffn_down_exps", HubForm::kExpert},
};

// Every layer is a mixture.
void MapQwen3Moe(HubConfig* config, HubExtras* extras) {
  MapQwen3(config, extras);
  const char* count = config->Has("num_experts") ? "num_experts" : "num_local_experts";
  extras->Set("expert_count", count, config->Int(count));
  config->RequireNumber("decoder_sparse_step", 1);
  config->RequireEmpty("mlp_only_layers");
}

}  // namespace

const HubModel kHubQwen2 = {.model_type = "qwen2",
                            .architecture = "qwen2",
                            .harmless = kHarmless,
                            .tensors = kTensors,
                            .map = MapQwen2};

const HubModel kHubQwen3 = {.model_type = "qwen3",
                            .architecture = "qwen3",
                            .harmless = kHarmless,
                            .tensors = kTensors,
                            .map = MapQwen3};

const HubModel kHubQwen3Moe = {.model_type = "qwen3_moe",
                               .architecture = "qwen3moe",
                               .keys = kMoeKeys,
                               .harmless = kMoeHarmless,
                               .tensors = kMoeTensors,
                               .map = MapQwen3Moe};

}  // namespace llm
