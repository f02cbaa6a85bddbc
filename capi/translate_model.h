// llm_model_options to ModelOptions, and a path or a source to a file.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inlay/llm.h"
#include "src/engine/loaded_model.h"

namespace llm {

// `given` may be NULL: all defaults.
absl::Status TranslateModelOptions(const llm_model_options* given, ModelOptions* options);

// A path may be that of a directory, which the limits bound.
absl::StatusOr<std::unique_ptr<ModelFile>> FileOfPath(const char* path, size_t path_size,
                                                      const LoaderLimits& limits);
absl::StatusOr<std::unique_ptr<ModelFile>> FileOfSource(const llm_model_source& source,
                                                        const LoaderLimits& limits);

}  // namespace llm
