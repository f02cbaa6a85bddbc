// Opens a GGUF file (versions 2 and 3, little-endian) as a WeightSource. Spec: the GGUF document of
// the ggml project.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "src/loader/model_file.h"
#include "src/loader/weight_source.h"

namespace llm {

// Bounds on what an untrusted header may claim; checked before anything is allocated.
struct LoaderLimits {
  uint64_t max_header_bytes = 1ull << 30;
  uint64_t max_tensors = 1u << 16;
  uint64_t max_metadata_entries = 1u << 16;
  uint64_t max_array_elements = 1u << 24;
  uint64_t max_string_bytes = 1u << 26;
};

// INVALID_ARGUMENT with what, which and where ("gguf x.gguf: tensor blk.3.attn_q.weight: ...") for
// a malformed file, UNIMPLEMENTED for a version, byte order or tensor type that this library does
// not read.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenGguf(std::unique_ptr<ModelFile> file,
                                                       const LoaderLimits& limits);

}  // namespace llm
