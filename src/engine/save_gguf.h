// A model written as a GGUF file, its weights as the options want them.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "src/engine/loaded_model.h"
#include "src/loader/model_file.h"

namespace llm {

// As llm_model_save_gguf.
absl::Status SaveGguf(std::unique_ptr<ModelFile> file, const ModelOptions& options,
                      const std::string& path);

}  // namespace llm
