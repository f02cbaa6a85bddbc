// Picks the architecture, lets it read its keys, and checks what all architectures must satisfy.
#include "src/model/model_config.h"

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "src/base/status_macros.h"
#include "src/model/architectures/architecture.h"
#include "src/model/config_reader.h"
#include "src/model/kv_scales.h"

namespace llm {
namespace {

constexpr int kMaxVocabSize = 1 << 22;

absl::Status CheckFileKind(const Metadata& metadata) {
  const absl::StatusOr<int64_t> splits = metadata.GetInt("split.count");
  if (splits.ok() && *splits > 1) {
    return absl::UnimplementedError(
        absl::StrCat("key split.count: one of ", *splits,
                     " parts: open it by its path, named as x-00001-of-00002.gguf"));
  }
  const absl::StatusOr<absl::string_view> type = metadata.GetString("general.type");
  if (type.ok() && *type != "model") {
    return absl::UnimplementedError(
        absl::StrCat("key general.type: \"", *type, "\" is not a model"));
  }
  return absl::OkStatus();
}

// The table itself says how many ids there are; a key that disagrees means a damaged file.
absl::Status ReadVocabSize(const WeightSource& source, ModelConfig* config) {
  const std::string name = absl::StrCat(config->names.embedding, ".weight");
  const TensorInfo* embedding = source.Find(name);
  if (embedding == nullptr) return absl::NotFoundError(absl::StrCat("tensor ", name, ": missing"));
  if (embedding->shape.size() != 2 || embedding->shape[0] < 1 ||
      embedding->shape[0] > kMaxVocabSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", name, ": expected a matrix of 1 to ", kMaxVocabSize, " rows"));
  }
  config->vocab_size = static_cast<int>(embedding->shape[0]);
  const std::string key = config->architecture + ".vocab_size";
  if (!source.metadata().Has(key)) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const int64_t stated, source.metadata().GetInt(key));
  if (stated != config->vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat("key ", key, ": ", stated, " ids, but tensor ",
                                                   name, " has ", config->vocab_size, " rows"));
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const ModelConfig& config) {
  if (config.num_heads % config.num_kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(config.architecture, ": ", config.num_kv_heads,
                                                   " kv heads do not divide ", config.num_heads,
                                                   " heads"));
  }
  if (config.head_dim % 16 != 0) {
    return absl::UnimplementedError(absl::StrCat(config.architecture, ": head_dim ",
                                                 config.head_dim, " is not a multiple of 16"));
  }
  if (config.head_dim > kMaxHeadDim) {
    return absl::UnimplementedError(absl::StrCat(config.architecture, ": head_dim ",
                                                 config.head_dim, " is above ", kMaxHeadDim));
  }
  if (config.rope_dim % 2 != 0 || config.rope_dim > config.head_dim) {
    return absl::InvalidArgumentError(absl::StrCat("key ", config.architecture,
                                                   ".rope.dimension_count: ", config.rope_dim,
                                                   " is odd or above head_dim ", config.head_dim));
  }
  return absl::OkStatus();
}

int FindOrAddGroup(ModelConfig* config, int window) {
  for (size_t i = 0; i < config->kv_groups.size(); ++i) {
    if (config->kv_groups[i].window == window) return static_cast<int>(i);
  }
  config->kv_groups.push_back({.window = window, .layers = {}});
  return static_cast<int>(config->kv_groups.size()) - 1;
}

void GroupLayers(ModelConfig* config) {
  for (const LayerConfig& layer : config->layers) {
    if (layer.window == 0) FindOrAddGroup(config, 0);  // full attention comes first
  }
  for (int i = 0; i < config->num_layers; ++i) {
    LayerConfig& layer = config->layers[static_cast<size_t>(i)];
    layer.kv_group = FindOrAddGroup(config, layer.window);
    config->kv_groups[static_cast<size_t>(layer.kv_group)].layers.push_back(i);
  }
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const WeightSource& source) {
  LLM_RETURN_IF_ERROR(CheckFileKind(source.metadata()));
  LLM_ASSIGN_OR_RETURN(const absl::string_view name,
                       source.metadata().GetString("general.architecture"));
  const Architecture* architecture = FindArchitecture(name);
  if (architecture == nullptr) {
    return absl::UnimplementedError(absl::StrCat("key general.architecture: \"", name,
                                                 "\" is not supported; known are ",
                                                 ArchitectureNames()));
  }
  ModelConfig config;
  config.architecture = std::string(name);
  ConfigReader reader(source, name);
  architecture->configure(&reader, &config);
  reader.RefuseUnread();
  LLM_RETURN_IF_ERROR(reader.status());
  LLM_RETURN_IF_ERROR(ReadVocabSize(source, &config));
  LLM_RETURN_IF_ERROR(CheckSizes(config));
  config.tied_embeddings = source.Find(absl::StrCat(config.names.head, ".weight")) == nullptr;
  GroupLayers(&config);
  LLM_ASSIGN_OR_RETURN(config.kv_scales, ReadKvScales(source.metadata(), config.num_layers));
  if (config.latent.rank > 0 && !config.kv_scales.keys.empty()) {
    return absl::UnimplementedError("scales of keys are not supported with latent attention");
  }
  return config;
}

}  // namespace llm
