// From a model file to a pack.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "src/engine/loaded_model.h"
#include "src/loader/model_file.h"

namespace llm {

// As llm_model_save. Holds the weights in memory, as opening the model does.
absl::Status SaveModel(std::unique_ptr<ModelFile> file, const ModelOptions& options,
                       const std::string& path);

}  // namespace llm
