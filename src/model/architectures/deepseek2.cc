// DeepSeek V2 and V3: attention over a latent vector per token, shared and routed experts behind
// some dense layers. DeepSeek-AI, 2024.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/model/architectures/architecture.h"

namespace llm {
namespace {

constexpr int kMaxRank = 1 << 14;
constexpr int kMaxHeadDim = 1 << 10;

// A key that follows from others, where it is there.
void RequireValue(ConfigReader* reader, const char* key, int value) {
  const int stated = reader->SizeOr(key, 1 << 20, value);
  if (stated == value) return;
  reader->Fail(absl::UnimplementedError(absl::StrCat(
      "key ", reader->FullName(key), ": ", stated, ", expected ", value, " of latent attention")));
}

// The cache holds one head for each token: its rotated part, the latent vector, zeros up to whole
// registers.
void ReadLatent(ConfigReader* reader, ModelConfig* config) {
  LatentConfig& latent = config->latent;
  latent.rank = reader->Size("attention.kv_lora_rank", kMaxRank);
  latent.query_rank = reader->CountOr("attention.q_lora_rank", kMaxRank, 0);
  config->rope_dim = reader->Size("rope.dimension_count", kMaxHeadDim);
  const int key_length = reader->Size("attention.key_length_mla", kMaxHeadDim);
  latent.value_dim = reader->Size("attention.value_length_mla", kMaxHeadDim);
  latent.key_dim = key_length - config->rope_dim;
  if (latent.key_dim < 1) {
    reader->Fail(absl::InvalidArgumentError(
        absl::StrCat("key ", reader->FullName("attention.key_length_mla"), ": ", key_length,
                     " dimensions, of which ", config->rope_dim, " are rotated")));
    latent.key_dim = 1;
  }
  RequireValue(reader, "attention.head_count_kv", 1);
  RequireValue(reader, "attention.key_length", latent.rank + config->rope_dim);
  RequireValue(reader, "attention.value_length", latent.rank);
  config->num_kv_heads = 1;
  config->head_dim = RoundUp(latent.rank + config->rope_dim, 16);
  config->attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(key_length)));
}

// The lengthened context softens scores where the key for it is there, and else the angles (as
// yarn does by itself).
void ApplyYarn(ConfigReader* reader, const RopeScaling& scaling, ModelConfig* config) {
  const float multiplier = reader->FloatOr("rope.scaling.yarn_log_multiplier", 0.0f);
  if (scaling.type != RopeScaling::kYarn || multiplier == 0) return;
  const double log_factor = std::log(std::max(1.0, double{scaling.factor}));
  const double magnitude = 1 + double{multiplier} * log_factor;
  config->attention_scale *= static_cast<float>(magnitude * magnitude);
  config->ropes[0].magnitude = 1.0f;
}

}  // namespace

void ConfigureDeepseek2(ConfigReader* reader, ModelConfig* config) {
  ReadLayerSizes(reader, config);
  ReadLatent(reader, config);
  config->rope_pairs = RopePairs::kAdjacent;
  const float base = reader->FloatOr("rope.freq_base", 10000.0f);
  const RopeScaling scaling = ReadRopeScaling(reader);
  config->ropes = {MakeRope(config->rope_dim, base, scaling)};
  ApplyYarn(reader, scaling, config);
  ReadExperts(reader, {}, config);
  reader->Harmless("vocab_size");
}

}  // namespace llm
