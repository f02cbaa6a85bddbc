// The index says which file each tensor is in; each file must agree, so that no tensor can hide or
// be taken from two places.
#include "src/loader/safetensors_set.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"

namespace llm {
namespace {

constexpr absl::string_view kSingleFile = "model.safetensors";
constexpr absl::string_view kIndexFile = "model.safetensors.index.json";
constexpr size_t kMaxFiles = 512;  // each is a descriptor of the host's; real models have up to 200

using WeightMap = std::map<std::string, std::string, std::less<>>;  // tensor to file

absl::Status AddFile(const ModelDirectory& directory, const std::string& name,
                     const LoaderLimits& limits, SafetensorsSet* set) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, directory.OpenFile(name));
  LLM_ASSIGN_OR_RETURN(std::vector<SafeTensor> tensors, ReadSafetensorsHeader(*file, limits));
  for (SafeTensor& tensor : tensors) {
    std::string key = tensor.name;
    const auto [at, is_new] = set->tensors.emplace(std::move(key), std::move(tensor));
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat("safetensors ", file->name(), ": tensor ",
                                                     Printable(at->first), ": there twice"));
    }
  }
  if (set->tensors.size() > limits.max_tensors) {
    return absl::ResourceExhaustedError(absl::StrCat(directory.path(), ": ", set->tensors.size(),
                                                     " tensors, more than the limit of ",
                                                     limits.max_tensors));
  }
  set->files.push_back(std::move(file));
  return absl::OkStatus();
}

absl::StatusOr<WeightMap> ParseIndex(const JsonDocument& index) {
  LLM_RETURN_IF_ERROR(index.root().CheckType(JsonType::kObject));
  for (JsonValue v = index.root().first(); v.exists(); v = v.next()) {
    if (v.key() == "metadata" || v.key() == "weight_map") continue;
    return absl::InvalidArgumentError(absl::StrCat("key ", Printable(v.key()), ": unknown"));
  }
  const JsonValue weight_map = index.root().Find("weight_map");
  if (absl::Status status = weight_map.CheckType(JsonType::kObject); !status.ok()) {
    return At("key weight_map", status);
  }
  WeightMap files;
  for (JsonValue v = weight_map.first(); v.exists(); v = v.next()) {
    const std::string where = absl::StrCat("weight_map: tensor ", Printable(v.key()));
    const absl::StatusOr<absl::string_view> file = v.GetString();
    if (!file.ok()) return At(where, file.status());
    if (!files.emplace(std::string(v.key()), std::string(*file)).second) {
      return At(where, absl::InvalidArgumentError("there twice"));
    }
  }
  return files;
}

absl::Status CheckAgainstIndex(const WeightMap& index, const SafetensorsSet& set,
                               const std::map<std::string, const ModelFile*>& files) {
  for (const auto& [tensor, file] : index) {
    const auto found = set.tensors.find(tensor);
    if (found == set.tensors.end() || found->second.file != files.at(file)) {
      return absl::InvalidArgumentError(
          absl::StrCat(kIndexFile, ": weight_map: tensor ", Printable(tensor), ": not in ", file));
    }
  }
  for (const auto& [name, tensor] : set.tensors) {
    if (index.count(name) != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(kIndexFile, ": weight_map: no tensor ",
                                                   Printable(name), ", which ", tensor.file->name(),
                                                   " has"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsSet> OpenShards(const ModelDirectory& directory,
                                          const LoaderLimits& limits) {
  LLM_ASSIGN_OR_RETURN(const JsonDocument document,
                       directory.ReadJson(kIndexFile, limits.max_header_bytes));
  absl::StatusOr<WeightMap> index = ParseIndex(document);
  if (!index.ok()) return At(kIndexFile, index.status());
  std::map<std::string, const ModelFile*> files;
  for (const auto& [tensor, file] : *index) files.emplace(file, nullptr);
  if (files.size() > kMaxFiles) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kIndexFile, ": ", files.size(), " files, at most ", kMaxFiles));
  }
  SafetensorsSet set;
  for (auto& [name, file] : files) {
    if (absl::Status added = AddFile(directory, name, limits, &set); !added.ok()) {
      return At(kIndexFile, added);
    }
    file = set.files.back().get();
  }
  LLM_RETURN_IF_ERROR(CheckAgainstIndex(*index, set, files));
  return set;
}

}  // namespace

absl::StatusOr<SafetensorsSet> OpenSafetensors(const ModelDirectory& directory,
                                               const LoaderLimits& limits) {
  if (directory.Has(kSingleFile)) {
    SafetensorsSet set;
    LLM_RETURN_IF_ERROR(AddFile(directory, std::string(kSingleFile), limits, &set));
    return set;
  }
  if (directory.Has(kIndexFile)) return OpenShards(directory, limits);
  return absl::NotFoundError(
      absl::StrCat(directory.path(), ": neither ", kSingleFile, " nor ", kIndexFile));
}

}  // namespace llm
