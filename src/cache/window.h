// Which blocks a KV group still needs, in tokens and blocks. Pure arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/math.h"

namespace llm {

// First block that holds one of the tokens [num_tokens - window, num_tokens); window 0: all tokens.
// Queries from position num_tokens on read no block before it.
inline int32_t FirstNeededBlock(int32_t num_tokens, int window, int32_t block_size) {
  return window == 0 ? 0 : std::max(0, num_tokens - window) / block_size;
}

// The most blocks that a sequence of num_tokens tokens holds at once when it is computed in chunks
// of at most chunk_tokens. An interval of n tokens touches at most CeilDiv(n - 1, block_size) + 1
// blocks, here n = window + chunk_tokens.
inline int64_t PeakBlocks(int64_t num_tokens, int64_t chunk_tokens, int window,
                          int32_t block_size) {
  const int64_t all = CeilDiv<int64_t>(num_tokens, block_size);
  if (window == 0) return all;
  return std::min(all, CeilDiv<int64_t>(window + chunk_tokens - 1, block_size) + 1);
}

// How many more blocks than the num_held it has such a sequence needs at most, when its table has
// table_size entries.
inline int64_t MissingBlocks(int64_t num_tokens, int64_t chunk_tokens, int64_t table_size,
                             int64_t num_held, int window, int32_t block_size) {
  const int64_t peak = PeakBlocks(num_tokens, chunk_tokens, window, block_size);
  const int64_t not_in_table = CeilDiv<int64_t>(num_tokens, block_size) - table_size;
  return std::max<int64_t>(0, std::min(peak - num_held, not_in_table));
}

}  // namespace llm
