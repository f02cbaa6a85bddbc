// How keys and values of one block lie in memory, for every KV dtype. Shared by kv_write, attention
// and the cache's storage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/tensor/dtype.h"

namespace llm {

// Keys of this many tokens lie transposed, so that one register holds one dimension of 16 keys:
// scores need no horizontal sum, and each lane adds its dimensions in order. Tiles start at
// multiples of 16 positions.
inline constexpr int kKeyTile = 16;

// One block of one layer holds, for each kv head, a region of head_bytes():
//   keys          [block_size / 16, head_dim, 16]
//   values        [block_size, head_dim]
//   key_scales    f16 [block_size]     only for kF8E4M3 and kI8
//   value_scales  f16 [block_size]     likewise
// A scaled element is stored as round(x / scale), saturated, where scale = f16(amax / 448 or amax /
// 127) over the head_dim values of one token and head. When that f16 is 0, zeros are stored; when
// it or a value is not finite, scale NaN and zeros.
struct KvLayout {
  DType dtype = DType::kF16;
  int block_size = 16;  // tokens; power of two, a multiple of kKeyTile
  int num_kv_heads = 0;
  int head_dim = 0;  // a multiple of 16

  bool scaled() const { return dtype == DType::kF8E4M3 || dtype == DType::kI8; }
  size_t matrix_bytes() const {
    return DTypeBytes(dtype) * static_cast<size_t>(block_size) * static_cast<size_t>(head_dim);
  }
  size_t values_offset() const { return matrix_bytes(); }
  size_t key_scales_offset() const { return 2 * matrix_bytes(); }
  size_t value_scales_offset() const {
    return key_scales_offset() + 2 * static_cast<size_t>(block_size);
  }
  size_t head_bytes() const {
    return 2 * matrix_bytes() + (scaled() ? 4 * static_cast<size_t>(block_size) : 0);
  }
  size_t block_bytes() const { return head_bytes() * static_cast<size_t>(num_kv_heads); }
};

// The blocks of one layer: block b starts at base + b * layout.block_bytes().
struct KvLayerView {
  KvLayout layout;
  std::byte* base = nullptr;
  int32_t num_blocks = 0;
};

}  // namespace llm
