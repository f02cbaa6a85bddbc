// Qwen 2, 2.5 and 3: as Llama, but with biases on q, k and v (2), or with normed q and k (3), and
// experts (3 MoE). Yang et al., 2024 and 2025.
#include "src/model/architectures/architecture.h"

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

}  // namespace llm
