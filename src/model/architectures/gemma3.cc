// Gemma 3 (text): windows on five layers of six, two rope bases, normed q and k, norms before and
// after each part.
#include "src/model/architectures/architecture.h"
#include "src/model/architectures/hub_models.h"

namespace llm {

void ConfigureGemma3(ConfigReader* reader, ModelConfig* config) {
  ReadGemma(reader, 62, config);
  config->qk_norm = true;
  config->attention_soft_cap = reader->FloatOr("attn_logit_softcapping", 0.0f);
  config->logit_soft_cap = reader->FloatOr("final_logit_softcapping", 0.0f);

  // Scaling stretches the global layers only.
  const float base = reader->FloatOr("rope.freq_base", 1000000.0f);
  const float local_base = reader->FloatOr("rope.freq_base_swa", 10000.0f);
  const RopeScaling scaling = ReadRopeScaling(reader);
  config->ropes = {MakeRope(config->rope_dim, base, scaling),
                   MakeRope(config->rope_dim, local_base, RopeScaling())};

  ReadWindows(reader, 6, config);
  for (LayerConfig& layer : config->layers) layer.rope = layer.window != 0 ? 1 : 0;
}

namespace {

constexpr HubTensor kTensors[] = {
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
};

constexpr HubKey kKeys[] = {
    {"sliding_window", "attention.sliding_window", HubValue::kInt},
    {"attn_logit_softcapping", "attn_logit_softcapping", HubValue::kFloat},
    {"final_logit_softcapping", "final_logit_softcapping", HubValue::kFloat},
};

// The bases of global and of local layers, in both styles; only global ones are stretched.
void MapRopes(HubConfig* config, HubExtras* extras) {
  double local_base = config->FloatOr("rope_local_base_freq", 10000.0);
  if (!config->Has("rope_parameters")) {
    HubConfig rope = config->Section("rope_scaling");
    MapRopeOf(&rope, config->FloatOr("rope_theta", 1000000.0), extras);
    config->Close(&rope);
  } else {
    HubConfig sections = config->Section("rope_parameters");
    HubConfig global = sections.Section("full_attention");
    MapRopeOf(&global, 1000000.0, extras);
    sections.Close(&global);
    HubConfig local = sections.Section("sliding_attention");
    local_base = local.FloatOr("rope_theta", local_base);
    local.RequireText("rope_type", "default");
    sections.Close(&local);
    config->Close(&sections);
  }
  extras->Set("rope.freq_base_swa", "rope_local_base_freq", local_base);
}

// Every n-th layer is global; layer_types says the same layer by layer.
void MapPattern(HubConfig* config, HubExtras* extras) {
  int64_t pattern = config->IntOr("sliding_window_pattern", 6);
  pattern = config->IntOr("_sliding_window_pattern", pattern);
  if (pattern < 1) return config->RefuseValue("sliding_window_pattern", "is not positive");
  const std::vector<std::string> types = config->Texts("layer_types");
  for (size_t i = 0; i < types.size(); ++i) {
    const bool local = (static_cast<int64_t>(i) + 1) % pattern != 0;
    if (types[i] == (local ? "sliding_attention" : "full_attention")) continue;
    return config->Refuse("layer_types", "does not repeat as sliding_window_pattern says");
  }
  extras->Set("attention.sliding_window_pattern", "sliding_window_pattern", pattern);
}

void Map(HubConfig* config, HubExtras* extras) {
  MapGemma(config, extras);
  MapPattern(config, extras);
  MapRopes(config, extras);
}

}  // namespace

const HubModel kHubGemma3 = {.model_type = "gemma3_text",
                             .architecture = "gemma3",
                             .keys = kKeys,
                             .tensors = kTensors,
                             .ties_by_default = true,
                             .norms_lack_one = true,
                             .map = Map};

}  // namespace llm
