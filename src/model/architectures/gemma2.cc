// Gemma 2: windows on every other layer, soft caps on scores and logits, norms before and after
// each part. Gemma Team, 2024.
#include <cmath>

#include "src/model/architectures/architecture.h"

namespace llm {

void ConfigureGemma2(ConfigReader* reader, ModelConfig* config) {
  ReadSizes(reader, config);
  config->rope_pairs = RopePairs::kHalves;
  config->activation = GateActivation::kGeluTanh;
  config->post_norms = true;
  config->embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config->hidden_size)));
  // Files do not say it: the query scale is head_dim, except in the 27B model (the one of 46
  // layers).
  if (config->num_layers == 46) {
    config->attention_scale = static_cast<float>(
        1.0 / std::sqrt(static_cast<double>(config->hidden_size) / config->num_heads));
  }
  config->attention_scale = reader->FloatOr("attention.scale", config->attention_scale);
  config->attention_soft_cap = reader->FloatOr("attn_logit_softcapping", 50.0f);
  config->logit_soft_cap = reader->FloatOr("final_logit_softcapping", 30.0f);
  reader->Harmless("vocab_size");

  const float base = reader->FloatOr("rope.freq_base", 10000.0f);
  config->ropes = {MakeRope(config->rope_dim, base, ReadRopeScaling(reader))};
  ReadWindows(reader, 2, config);
}

}  // namespace llm
