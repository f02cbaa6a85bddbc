// The element formats of weights, one row each in formats.def: name, elements and bytes of a block,
// decoder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llm {

// Numbered as the ggml type ids of GGUF files.
enum class WeightFormat : int32_t {
#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) k##name = ggml_type,
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT
};

struct WeightFormatInfo {
  WeightFormat format;
  const char* name;  // "Q4_1"
  int block_size;    // elements
  int block_bytes;
  // Writes `count` f32 (a multiple of block_size) from the blocks at `src`.
  void (*decode)(const void* src, int64_t count, float* dst);
};

// Whether ggml has no such type: a GGUF file with it is read by this library alone.
constexpr bool IsOwnFormat(WeightFormat format) { return static_cast<int32_t>(format) > 1000; }

// Null for a ggml type id that has no row.
const WeightFormatInfo* FindWeightFormat(int32_t ggml_type);
const WeightFormatInfo& GetWeightFormat(WeightFormat format);

// Bytes of one row of `cols` elements. REQUIRES: cols is a multiple of the block size.
inline int64_t RowBytes(const WeightFormatInfo& info, int64_t cols) {
  return cols / info.block_size * info.block_bytes;
}

}  // namespace llm
