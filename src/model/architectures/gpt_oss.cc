// gpt-oss: experts with biases and a clamped SwiGLU, windows on every other layer, a sink for each
// head, yarn without truncation. OpenAI, 2025.
#include "src/model/architectures/architecture.h"

namespace llm {

void ConfigureGptOss(ConfigReader* reader, ModelConfig* config) {
  ReadSizes(reader, config);
  config->names.ffn_norm = "post_attention_norm";
  config->rope_pairs = RopePairs::kHalves;
  config->may_have_biases = true;
  config->attention_sinks = true;
  config->activation = GateActivation::kClampedSwiglu;
  config->activation_limit = reader->FloatOr("expert_swiglu_limit", 7.0f);
  // The softmax over the chosen experts only is that over all, normalised.
  ReadExperts(reader, {.normalize = true}, config);

  // The models were trained without truncation, and GGUF has no key for it.
  const float base = reader->FloatOr("rope.freq_base", 150000.0f);
  const RopeScaling scaling = ReadRopeScaling(reader, /*truncate_yarn=*/false);
  config->ropes = {MakeRope(config->rope_dim, base, scaling)};
  ReadWindows(reader, 2, config);
  reader->Harmless("vocab_size");
}

}  // namespace llm
