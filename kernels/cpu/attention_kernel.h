// The unit of attention on the CPU: some query rows of one kv head against one split of their keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"
#include "src/tensor/dtype.h"

namespace llm {

// Rows of one sequence and kv head: row r is query token r / group and head r % group of the kv
// head's group, so that all rows of a block read the same keys.
struct AttentionBlock {
  const float* q;    // row 0; heads are head_dim apart
  int64_t q_stride;  // floats from a token to the next
  int group;         // query heads per kv head
  int row_begin;
  int num_rows;        // <= kAttentionMaxRows
  int first_position;  // of query token 0
  int window;          // 0: none
  float scale;
  float soft_cap;      // 0: none
  const float* sinks;  // of row r: [r % group]; null: none
  int head_dim;

  const int32_t* blocks;  // of the sequence
  const std::byte* base;  // block b has the kv head's region at base + b * block_bytes
  size_t block_bytes;
  int block_size;
  DType dtype;
  size_t values_offset;
  size_t key_scales_offset;
  size_t value_scales_offset;
  bool token_scales;  // one for each key and each value
  float value_scale;  // of all values; that of keys is part of `scale`

  int Position(int row) const { return first_position + (row_begin + row) / group; }
  int FirstKey(int row) const {
    const int position = Position(row);
    return window > 0 && position >= window ? position - window + 1 : 0;
  }
};

inline constexpr int kAttentionMaxRows = 64;
// Rows of a block times head_dim: their values, and their queries, fit in a third of an L1 cache
// (or are 8 rows of the largest head).
inline constexpr int kAttentionUnitFloats = 4096;
inline constexpr int kAttentionMaxFloats = 4608;
// kAttentionSplit and kMaxHeadDim, whose headers would pull Abseil into the sources of an
// instruction set.
inline constexpr int kAttentionSplitKeys = 512;
inline constexpr int kAttentionMaxHeadDim = 576;

// What a split gives, for each row: the largest score, the sum of exp(score - max), the values
// weighted alike. Rows that see no key of the split hold nothing.
struct AttentionPartial {
  float* max;     // [num_rows]
  float* sum;     // [num_rows]
  float* values;  // [num_rows, head_dim]
};

}  // namespace llm
