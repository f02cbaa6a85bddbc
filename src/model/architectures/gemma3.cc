// Gemma 3 (text): windows on five layers of six, two rope bases, normed q and k, norms before and
// after each part.
#include <cmath>

#include "src/model/architectures/architecture.h"

namespace llm {

void ConfigureGemma3(ConfigReader* reader, ModelConfig* config) {
  ReadSizes(reader, config);
  config->rope_pairs = RopePairs::kHalves;
  config->activation = GateActivation::kGeluTanh;
  config->qk_norm = true;
  config->post_norms = true;
  config->embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config->hidden_size)));
  // Files do not say it: the query scale is head_dim, except in the 27B model (the one of 62
  // layers).
  if (config->num_layers == 62) {
    config->attention_scale = static_cast<float>(
        1.0 / std::sqrt(static_cast<double>(config->hidden_size) / config->num_heads));
  }
  config->attention_scale = reader->FloatOr("attention.scale", config->attention_scale);
  config->attention_soft_cap = reader->FloatOr("attn_logit_softcapping", 0.0f);
  config->logit_soft_cap = reader->FloatOr("final_logit_softcapping", 0.0f);
  reader->Harmless("vocab_size");

  // Scaling stretches the global layers only.
  const float base = reader->FloatOr("rope.freq_base", 1000000.0f);
  const float local_base = reader->FloatOr("rope.freq_base_swa", 10000.0f);
  const RopeScaling scaling = ReadRopeScaling(reader);
  config->ropes = {MakeRope(config->rope_dim, base, scaling),
                   MakeRope(config->rope_dim, local_base, RopeScaling())};

  ReadWindows(reader, 6, config);
  for (LayerConfig& layer : config->layers) layer.rope = layer.window != 0 ? 1 : 0;
}

}  // namespace llm
