// Phi-3 and Phi-4: as Llama with q, k and v in one tensor, gate and up in another, and factors of
// its own for long prompts (longrope). Abdin et al., 2024; Ding et al., 2024.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/model/architectures/architecture.h"

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

}  // namespace llm
