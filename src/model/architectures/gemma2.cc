// Gemma 2: windows on every other layer, soft caps on scores and logits, norms before and after
// each part. Gemma Team, 2024.
#include "src/model/architectures/architecture.h"
#include "src/model/architectures/hub_models.h"

namespace llm {

void ConfigureGemma2(ConfigReader* reader, ModelConfig* config) {
  ReadGemma(reader, 46, config);
  config->attention_soft_cap = reader->FloatOr("attn_logit_softcapping", 50.0f);
  config->logit_soft_cap = reader->FloatOr("final_logit_softcapping", 30.0f);

  const float base = reader->FloatOr("rope.freq_base", 10000.0f);
  config->ropes = {MakeRope(config->rope_dim, base, ReadRopeScaling(reader))};
  ReadWindows(reader, 2, config);
}

namespace {

constexpr HubTensor kTensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
};

constexpr HubKey kKeys[] = {
    {"sliding_window", "attention.sliding_window", HubValue::kInt},
};

constexpr const char* kHarmless[] = {"hidden_act"};  // hidden_activation counts

void MapSoftCap(const char* key, double absent, HubConfig* config, HubExtras* extras) {
  if (config->IsNull(key)) return config->Refuse(key, "only a number is supported");
  extras->Set(key, key, config->FloatOr(key, absent));
}

void Map(HubConfig* config, HubExtras* extras) {
  MapGemma(config, extras);
  MapSoftCap("attn_logit_softcapping", 50.0, config, extras);
  MapSoftCap("final_logit_softcapping", 30.0, config, extras);
  MapLayerTypes(config, extras);
  MapRope(config, extras);
}

}  // namespace

const HubModel kHubGemma2 = {.model_type = "gemma2",
                             .architecture = "gemma2",
                             .keys = kKeys,
                             .harmless = kHarmless,
                             .tensors = kTensors,
                             .ties_by_default = true,
                             .norms_lack_one = true,
                             .map = Map};

}  // namespace llm
