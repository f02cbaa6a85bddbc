// Llama 1 to 3, and what is built like them (SmolLM, Mistral). Touvron et al.,
// 2023.
#include "src/model/architectures/architecture.h"
#include "src/model/architectures/hub_models.h"

namespace llm {

void ConfigureLlama(ConfigReader* reader, ModelConfig* config) {
  ReadSizes(reader, config);
  config->rope_pairs = ReadRopePairs(reader);
  config->may_have_biases = true;
  config->attention_scale = reader->FloatOr("attention.scale", config->attention_scale);

  const float base = reader->FloatOr("rope.freq_base", 10000.0f);
  config->ropes = {MakeRope(config->rope_dim, base, ReadRopeScaling(reader))};
  // Llama 3.1 and later: the converter turned the "llama3" scaling into one factor per frequency.
  config->rope_factors = reader->source().Find("rope_freqs.weight") != nullptr;

  ReadWindows(reader, 0, config);          // of all layers, where there is one
  reader->Harmless("vocab_size");          // checked against the embedding table by the caller
  reader->Harmless("tensor_data_layout");  // names the converter's row permutation
  ReadExperts(reader, {.normalize = true}, config);  // Mixtral (Jiang et al., 2024)
}

namespace {

constexpr HubTensor kTensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
};

void Map(HubConfig* config, HubExtras* extras) {
  config->RequireText("hidden_act", "silu");
  extras->Set("rope.halves", "rope_theta", true);
  if (config->BoolOr("attention_bias", false)) {
    extras->biases.insert({"attn_q", "attn_k", "attn_v", "attn_output"});
  }
  if (config->BoolOr("mlp_bias", false)) {
    extras->biases.insert({"ffn_gate", "ffn_up", "ffn_down"});
  }
  MapRope(config, extras);
}

constexpr HubKey kMistralKeys[] = {
    {"sliding_window", "attention.sliding_window", HubValue::kInt},
};

constexpr HubKey kMixtralKeys[] = {
    {"sliding_window", "attention.sliding_window", HubValue::kInt},
    {"num_local_experts", "expert_count", HubValue::kInt},
    {"num_experts_per_tok", "expert_used_count", HubValue::kInt},
};

constexpr const char* kMixtralHarmless[] = {"output_router_logits", "router_aux_loss_coef",
                                            "router_jitter_noise"};

constexpr HubTensor kMixtralTensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w1", "blk.{}.ffn_gate_exps", HubForm::kExpert},
    {"model.layers.{}.block_sparse_moe.experts.{}.w3", "blk.{}.ffn_up_exps", HubForm::kExpert},
    {"model.layers.{}.block_sparse_moe.experts.{}.w2", "blk.{}.ffn_down_exps", HubForm::kExpert},
};

}  // namespace

const HubModel kHubLlama = {
    .model_type = "llama", .architecture = "llama", .tensors = kTensors, .map = Map};

const HubModel kHubMistral = {.model_type = "mistral",
                              .architecture = "llama",
                              .keys = kMistralKeys,
                              .tensors = kTensors,
                              .map = Map};

const HubModel kHubMixtral = {.model_type = "mixtral",
                              .architecture = "llama",
                              .keys = kMixtralKeys,
                              .harmless = kMixtralHarmless,
                              .tensors = kMixtralTensors,
                              .map = Map};

}  // namespace llm
