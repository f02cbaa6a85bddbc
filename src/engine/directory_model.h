// A model directory as hubs hand it out (config.json, safetensors, tokenizer.json), seen as the
// GGUF file that a converter would make of it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"

namespace llm {

// The file at `path`, the parts of a split one, or what a directory there composes: its header is
// made in memory, weights are read from the directory's files when they are asked for. Errors name
// the file, the key or tensor, and what is wrong with it: NOT_FOUND, INVALID_ARGUMENT,
// RESOURCE_EXHAUSTED, UNIMPLEMENTED.
absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelPath(const std::string& path,
                                                         const LoaderLimits& limits);

}  // namespace llm
