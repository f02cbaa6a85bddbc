// The tensor table of a GGUF header: read as records first, checked against the file when the
// header's end is known.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/loader/gguf_cursor.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/weight_source.h"

namespace llm {

constexpr uint32_t kMaxGgufDims = 4;

struct GgufTensorRecord {
  ByteRange name;
  uint32_t num_dims;            // 1..kMaxGgufDims
  uint64_t dims[kMaxGgufDims];  // fastest first
  uint32_t ggml_type;
  uint64_t offset;  // from the start of the data section
};

// Where tensor data may lie.
struct GgufDataSection {
  uint64_t begin;  // absolute
  uint64_t file_size;
  uint64_t alignment;
};

absl::StatusOr<std::vector<GgufTensorRecord>> ParseGgufTensors(GgufCursor* cursor,
                                                               uint64_t num_tensors,
                                                               const LoaderLimits& limits);

// UNIMPLEMENTED for a tensor type without a row in formats.def; INVALID_ARGUMENT for a tensor that
// is misaligned, outside the file, over another one, or of a shape that its format cannot have.
// Names may still repeat.
absl::StatusOr<std::vector<TensorInfo>> ResolveGgufTensors(
    const std::vector<GgufTensorRecord>& records, const HeaderBytes& bytes,
    const GgufDataSection& data);

}  // namespace llm
