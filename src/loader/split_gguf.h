// A model in several GGUF files ("x-00001-of-00003.gguf"), seen as the one file that it was cut
// from.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"

namespace llm {

// The file at `path`; when it is a part by its name and its key split.count, all parts, which lie
// in the same folder: any one may be named. Metadata is the first part's. Errors are those of
// OpenModelFile and OpenGguf and name the part; INVALID_ARGUMENT: one that belongs elsewhere, a
// tensor that two have, another number of tensors than split.tensors.count.
absl::StatusOr<std::unique_ptr<ModelFile>> OpenGgufParts(const std::string& path,
                                                         const LoaderLimits& limits);

}  // namespace llm
