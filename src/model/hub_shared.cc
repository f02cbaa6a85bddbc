// Parts of config.json that families share. Rotary embeddings: rope_theta beside rope_scaling, or
// both in rope_parameters.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/model/hub_model.h"

namespace llm {
namespace {

void MapYarn(HubConfig* rope, HubExtras* extras) {
  extras->Set("rope.scaling.yarn_beta_fast", "beta_fast", rope->FloatOr("beta_fast", 32.0));
  extras->Set("rope.scaling.yarn_beta_slow", "beta_slow", rope->FloatOr("beta_slow", 1.0));
  extras->Set("rope.scaling.yarn_truncate", "truncate", rope->BoolOr("truncate", true));
  if (rope->Has("attention_factor")) {
    extras->Set("rope.scaling.yarn_attn_factor", "attention_factor",
                rope->Float("attention_factor"));
  }
}

// DeepSeek's two magnitudes: their quotient is that of the angles, the second one softens scores.
void MapMagnitudes(HubConfig* rope, HubExtras* extras) {
  if (!rope->Has("mscale") && !rope->Has("mscale_all_dim")) return;
  const double all = rope->FloatOr("mscale_all_dim", 0.0);
  rope->RequireNumber("mscale", all);
  extras->Set("rope.scaling.yarn_log_multiplier", "mscale_all_dim", 0.1 * all);
}

void MapLlama3(HubConfig* rope, HubExtras* extras) {
  for (const char* key : {"low_freq_factor", "high_freq_factor"}) {
    extras->Set(absl::StrCat("rope.scaling.", key), key, rope->Float(key));
  }
}

// Factors by length of the prompt; the stretch is that of the context lengths.
void MapLongrope(HubConfig* rope, HubExtras* extras) {
  extras->Set("rope.scaling.type", "rope_type", std::string("longrope"));
  extras->vectors.emplace_back("rope_factors_long.weight", rope->Floats("long_factor"));
  extras->vectors.emplace_back("rope_factors_short.weight", rope->Floats("short_factor"));
  if (rope->Has("attention_factor")) {
    extras->Set("rope.scaling.attn_factor", "attention_factor", rope->Float("attention_factor"));
  }
  // Phi-3 says it beside the section as well.
  if (rope->Has("original_max_position_embeddings")) {
    extras->Set("rope.scaling.original_context_length", "original_max_position_embeddings",
                rope->Int("original_max_position_embeddings"));
  }
}

void MapScaling(HubConfig* rope, HubExtras* extras) {
  std::string type = rope->TextOr("type", "default");
  type = rope->TextOr("rope_type", type);
  if (type == "default") return;
  if (type == "longrope" || type == "su") return MapLongrope(rope, extras);
  if (type != "linear" && type != "llama3" && type != "yarn") {
    return rope->Refuse("rope_type", absl::StrCat("\"", type, "\" is not supported"));
  }
  extras->Set("rope.scaling.type", "rope_type", type);
  extras->Set("rope.scaling.factor", "factor", rope->Float("factor"));
  if (type != "linear" || rope->Has("original_max_position_embeddings")) {
    extras->Set("rope.scaling.original_context_length", "original_max_position_embeddings",
                rope->Int("original_max_position_embeddings"));
  }
  if (type == "yarn") {
    MapYarn(rope, extras);
    MapMagnitudes(rope, extras);
  }
  if (type == "llama3") MapLlama3(rope, extras);
}

}  // namespace

void MapRopeOf(HubConfig* rope, double theta, HubExtras* extras) {
  extras->Set("rope.freq_base", "rope_theta", rope->FloatOr("rope_theta", theta));
  // Only some families turn a part of a head.
  if (extras->Has("rope.dimension_count")) {
    rope->Harmless("partial_rotary_factor");
  } else {
    rope->RequireNumber("partial_rotary_factor", 1.0);
  }
  MapScaling(rope, extras);
}

void MapRope(HubConfig* config, HubExtras* extras) {
  const char* section = config->Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  HubConfig rope = config->Section(section);
  MapRopeOf(&rope, config->FloatOr("rope_theta", 10000.0), extras);
  config->Close(&rope);
}

void MapLayerTypes(HubConfig* config, HubExtras* extras) {
  if (!config->Has("layer_types")) return;
  std::vector<int32_t> windows;
  for (const std::string& type : config->Texts("layer_types")) {
    if (type != "sliding_attention" && type != "full_attention") {
      return config->Refuse("layer_types", absl::StrCat("\"", type, "\" is not supported"));
    }
    windows.push_back(type == "sliding_attention" ? 1 : 0);
  }
  extras->Set("attention.sliding_window_pattern", "layer_types", std::move(windows));
}

void MapGemma(HubConfig* config, HubExtras* extras) {
  config->RequireText("hidden_activation", "gelu_pytorch_tanh");
  config->RequireBool("attention_bias", false);
  config->RequireBool("use_bidirectional_attention", false);
  const double scalar = config->FloatOr("query_pre_attn_scalar", 256.0);
  if (!(scalar > 0)) return config->RefuseValue("query_pre_attn_scalar", "is not positive");
  extras->Set("attention.scale", "query_pre_attn_scalar", 1.0 / std::sqrt(scalar));
}

}  // namespace llm
