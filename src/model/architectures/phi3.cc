// Phi-3 and Phi-4: as Llama with q, k and v in one tensor, gate and up in another, and factors of
// its own for long prompts (longrope). Abdin et al., 2024; Ding et al., 2024.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/model/architectures/architecture.h"
#include "src/model/architectures/hub_models.h"

namespace llm {
namespace {

// Tensors hold the factors, as GGUF has them, whatever the file says of the scaling's type.
bool HasFactors(const ConfigReader& reader) {
  return reader.source().Find("rope_factors_long.weight") != nullptr ||
         reader.source().Find("rope_factors_short.weight") != nullptr;
}

float Longrope(ConfigReader* reader, const RopeScaling& scaling, ModelConfig* config) {
  if (scaling.original_context < 2) {
    reader->Fail(absl::InvalidArgumentError(
        absl::StrCat("key ", reader->FullName("rope.scaling.original_context_length"), ": ",
                     scaling.original_context, ", expected 2 or more with rope factors")));
    return 1.0f;
  }
  config->long_rope_above = scaling.original_context;
  const double stretch = static_cast<double>(config->context_length) / scaling.original_context;
  if (stretch <= 1) return 1.0f;
  return static_cast<float>(
      std::sqrt(1 + std::log(stretch) / std::log(static_cast<double>(scaling.original_context))));
}

}  // namespace

void ConfigurePhi3(ConfigReader* reader, ModelConfig* config) {
  ReadSizes(reader, config);
  config->rope_pairs = RopePairs::kHalves;
  config->fused_gate_up = true;
  const float base = reader->FloatOr("rope.freq_base", 10000.0f);
  const RopeScaling scaling = ReadRopeScaling(reader);
  config->ropes = {MakeRope(config->rope_dim, base, scaling)};
  float& magnitude = config->ropes[0].magnitude;
  if (HasFactors(*reader)) magnitude = Longrope(reader, scaling, config);
  magnitude = reader->FloatOr("rope.scaling.attn_factor", magnitude);
  ReadWindows(reader, 0, config);
  reader->Harmless("vocab_size");
}

namespace {

constexpr HubTensor kTensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"},
    {"model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"},
};

constexpr HubKey kKeys[] = {
    {"sliding_window", "attention.sliding_window", HubValue::kInt},
};

constexpr const char* kHarmless[] = {"embd_pdrop", "resid_pdrop", "auto_map"};

constexpr int64_t kMaxHeadDim = 1 << 20;  // a bound for arithmetic; the reader has its own

// The part of a head that is turned (Phi-4-mini: three quarters).
void MapShare(HubConfig* config, HubExtras* extras) {
  constexpr absl::string_view kKey = "partial_rotary_factor";
  HubConfig rope =
      config->Section(config->Has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  const double share = rope.FloatOr(kKey, config->FloatOr(kKey, 1.0));
  config->Fail(rope.status());
  if (share == 1) return;
  if (!(share > 0 && share < 1)) return config->RefuseValue(kKey, "is not in 0 to 1");
  const int64_t heads = config->Int("num_attention_heads");
  const int64_t head_dim =
      config->IntOr("head_dim", heads > 0 ? config->Int("hidden_size") / heads : 0);
  if (head_dim > kMaxHeadDim) return config->RefuseValue("head_dim", "is too large");
  extras->Set("rope.dimension_count", kKey,
              static_cast<int64_t>(static_cast<double>(head_dim) * share));
}

void Map(HubConfig* config, HubExtras* extras) {
  config->RequireText("hidden_act", "silu");
  config->RequireBool("attention_bias", false);
  MapShare(config, extras);
  MapRope(config, extras);
  // The same number as in the section, which older files lack.
  const char* key = "original_max_position_embeddings";
  const int64_t original = config->IntOr(key, 0);
  if (original == 0 || extras->Has("rope.scaling.original_context_length")) return;
  extras->Set("rope.scaling.original_context_length", key, original);
}

}  // namespace

const HubModel kHubPhi3 = {.model_type = "phi3",
                           .architecture = "phi3",
                           .keys = kKeys,
                           .harmless = kHarmless,
                           .tensors = kTensors,
                           .map = Map};

}  // namespace llm
