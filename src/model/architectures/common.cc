// Keys and formulas that most families share.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/model/architectures/architecture.h"

namespace llm {
namespace {

// Far above any model there is, and small enough that products of three of them and a step's tokens
// fit 64 bits.
constexpr int kMaxHiddenSize = 1 << 17;
constexpr int kMaxFfnSize = 1 << 20;
constexpr int kMaxLayers = 1 << 10;
constexpr int kMaxHeads = 1 << 10;
constexpr int kMaxHeadDim = 1 << 10;
constexpr int kMaxContextLength = 1 << 26;

}  // namespace

void ReadSizes(ConfigReader* reader, ModelConfig* config) {
  config->num_layers = reader->Size("block_count", kMaxLayers);
  config->context_length = reader->Size("context_length", kMaxContextLength);
  config->hidden_size = reader->Size("embedding_length", kMaxHiddenSize);
  config->ffn_size = reader->Size("feed_forward_length", kMaxFfnSize);
  config->num_heads = reader->Size("attention.head_count", kMaxHeads);
  config->num_kv_heads = reader->SizeOr("attention.head_count_kv", kMaxHeads, config->num_heads);
  config->norm_eps = reader->Float("attention.layer_norm_rms_epsilon");
  config->layers.resize(static_cast<size_t>(config->num_layers));

  if (!reader->Has("attention.key_length") && config->hidden_size % config->num_heads != 0) {
    reader->Fail(absl::InvalidArgumentError(
        absl::StrCat("key ", reader->FullName("attention.head_count"), ": ", config->num_heads,
                     " heads do not divide a hidden size of ", config->hidden_size)));
  }
  config->head_dim =
      reader->SizeOr("attention.key_length", kMaxHeadDim, config->hidden_size / config->num_heads);
  const int value_length = reader->SizeOr("attention.value_length", kMaxHeadDim, config->head_dim);
  if (value_length != config->head_dim) {
    reader->Fail(absl::UnimplementedError(
        absl::StrCat("key ", reader->FullName("attention.value_length"), ": values of ",
                     value_length, " with keys of ", config->head_dim, " dimensions")));
  }
  config->attention_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(config->head_dim)));
  config->rope_dim = reader->SizeOr("rope.dimension_count", kMaxHeadDim, config->head_dim);
}

float ReadLinearRopeScaling(ConfigReader* reader) {
  const std::string type = reader->StringOr("rope.scaling.type", "");
  // Files older than `rope.scaling.type` say it with one number.
  float factor = reader->FloatOr("rope.scale_linear", 1.0f);
  factor = reader->FloatOr("rope.scaling.factor", factor);
  reader->Harmless("rope.scaling.finetuned");
  reader->Harmless(
      "rope.scaling.original_context_length");  // only yarn and its kin compute with it
  if (type == "none") return 1.0f;
  if (type.empty() || type == "linear") return factor;
  reader->Fail(absl::UnimplementedError(absl::StrCat("key ", reader->FullName("rope.scaling.type"),
                                                     ": \"", type, "\" is not supported")));
  return 1.0f;
}

RopeVariant MakeRope(int rope_dim, float base, float position_divisor) {
  RopeVariant rope;
  for (int i = 0; i < rope_dim / 2; ++i) {
    const double exponent = -2.0 * i / rope_dim;
    rope.inv_freq.push_back(
        static_cast<float>(std::pow(static_cast<double>(base), exponent) / position_divisor));
  }
  return rope;
}

}  // namespace llm
