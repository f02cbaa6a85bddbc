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

void ReadLayerSizes(ConfigReader* reader, ModelConfig* config) {
  config->num_layers = reader->Size("block_count", kMaxLayers);
  config->context_length = reader->Size("context_length", kMaxContextLength);
  config->hidden_size = reader->Size("embedding_length", kMaxHiddenSize);
  config->ffn_size = reader->Size("feed_forward_length", kMaxFfnSize);
  config->num_heads = reader->Size("attention.head_count", kMaxHeads);
  config->norm_eps = reader->Float("attention.layer_norm_rms_epsilon");
  config->layers.resize(static_cast<size_t>(config->num_layers));
}

void ReadSizes(ConfigReader* reader, ModelConfig* config) {
  ReadLayerSizes(reader, config);
  config->num_kv_heads = reader->SizeOr("attention.head_count_kv", kMaxHeads, config->num_heads);
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

RopePairs ReadRopePairs(ConfigReader* reader) {
  const bool halves = reader->BoolOr("rope.halves", false);
  return halves ? RopePairs::kHalves : RopePairs::kAdjacent;
}

void ReadWindows(ConfigReader* reader, int default_pattern, ModelConfig* config) {
  const char* key = "attention.sliding_window";
  const int window = default_pattern == 0 ? reader->CountOr(key, kMaxContextLength, 0)
                                          : reader->Size(key, kMaxContextLength);
  const std::vector<int64_t> flags = reader->IntsOrNone("attention.sliding_window_pattern");
  const int pattern = flags.empty() ? reader->SizeOr("attention.sliding_window_pattern", kMaxLayers,
                                                     default_pattern)
                                    : 0;
  if (!flags.empty() && flags.size() != config->layers.size()) {
    reader->Fail(absl::InvalidArgumentError(
        absl::StrCat("key ", reader->FullName("attention.sliding_window_pattern"), ": ",
                     flags.size(), " flags for ", config->num_layers, " layers")));
    return;
  }
  for (size_t i = 0; i < config->layers.size(); ++i) {
    bool local = pattern == 0 || (i + 1) % static_cast<size_t>(pattern) != 0;
    if (!flags.empty()) local = flags[i] != 0;
    config->layers[i].window = local ? window : 0;
  }
}

void ReadGemma(ConfigReader* reader, int layers_of_27b, ModelConfig* config) {
  ReadSizes(reader, config);
  config->rope_pairs = RopePairs::kHalves;
  config->activation = GateActivation::kGeluTanh;
  config->post_norms = true;
  config->embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config->hidden_size)));
  // Files do not say it: the query scale is head_dim, except in the 27B models.
  if (config->num_layers == layers_of_27b) {
    config->attention_scale = static_cast<float>(
        1.0 / std::sqrt(static_cast<double>(config->hidden_size) / config->num_heads));
  }
  config->attention_scale = reader->FloatOr("attention.scale", config->attention_scale);
  reader->Harmless("vocab_size");
}

}  // namespace llm
