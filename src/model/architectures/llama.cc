// Llama 1 to 3, and what is built like them (SmolLM, Mistral). Touvron et al.,
// 2023.
#include "src/model/architectures/architecture.h"

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

}  // namespace llm
