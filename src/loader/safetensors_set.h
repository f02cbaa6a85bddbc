// The tensors of a directory: model.safetensors, or the files that model.safetensors.index.json
// names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/loader/model_directory.h"
#include "src/loader/safetensors_header.h"

namespace llm {

struct SafetensorsSet {
  std::vector<std::unique_ptr<ModelFile>> files;
  std::map<std::string, SafeTensor, std::less<>> tensors;  // by name
};

// NOT_FOUND when the directory has neither; INVALID_ARGUMENT where index and headers disagree,
// naming the tensor. The limits hold for all files together.
absl::StatusOr<SafetensorsSet> OpenSafetensors(const ModelDirectory& directory,
                                               const LoaderLimits& limits);

}  // namespace llm
