// How keys and values of one block lie in memory, for every KV dtype. Shared by kv_write, attention
// and the cache's storage.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "src/tensor/dtype.h"

namespace llm {

// Keys of this many tokens lie transposed, so that one register holds one dimension of 16 keys:
// scores need no horizontal sum, and each lane adds its dimensions in order. Tiles start at
// multiples of 16 positions.
inline constexpr int kKeyTile = 16;

// Dimensions that share a scale of kI4: a group within a token and head.
inline constexpr int kKvGroup = 32;

// In the place of a token's slot: its keys and values are stored nowhere.
inline constexpr int32_t kNoSlot = INT_MIN;

// One block of one layer holds, for each kv head, a region of head_bytes():
//   keys          [block_size / 16, head_dim, 16]
//   values        [block_size, head_dim]
//   key_scales    f16 [scale_groups(), block_size]     only where there are some
//   value_scales  f16 [scale_groups(), block_size]     likewise
// A scaled element of kF8E4M3 or kI8 is stored as round(x / scale), saturated, where scale =
// f16(amax / 448 or amax / 127) over the head_dim values of one token and head, or, with
// constant_scales, the layer's. When that f16 is 0, zeros are stored; when it or a value is not
// finite, scale NaN and zeros.
// kI4 stores round(x / scale) + 8, from 0 to 15, with scale = f16(m / -8) over a group, m the value
// of the largest magnitude (the positive one of two); zeros are 8. Two share a byte, the low nibble
// first: of keys, dimensions 2i and 2i + 1 of one token ([block_size / 16, head_dim / 2, 16]
// bytes); of values, dimensions i and i + 16 of a group. So no two tokens share a byte.
struct KvLayout {
  DType dtype = DType::kF16;
  int block_size = 16;  // tokens; power of two, a multiple of kKeyTile
  int num_kv_heads = 0;
  int head_dim = 0;              // a multiple of 16; of kKvGroup for kI4
  bool constant_scales = false;  // KvLayerView has them; kF8E4M3 alone

  // Scales of a token's key, and of its value.
  int scale_groups() const {
    if (dtype == DType::kI4) return head_dim / kKvGroup;
    return (dtype == DType::kF8E4M3 && !constant_scales) || dtype == DType::kI8 ? 1 : 0;
  }
  bool scaled() const { return scale_groups() > 0; }
  size_t matrix_bytes() const {
    return DTypeBits(dtype) * static_cast<size_t>(block_size) * static_cast<size_t>(head_dim) / 8;
  }
  size_t scales_bytes() const {
    return 2 * static_cast<size_t>(block_size) * static_cast<size_t>(scale_groups());
  }
  size_t values_offset() const { return matrix_bytes(); }
  size_t key_scales_offset() const { return 2 * matrix_bytes(); }
  size_t value_scales_offset() const { return key_scales_offset() + scales_bytes(); }
  size_t head_bytes() const { return 2 * (matrix_bytes() + scales_bytes()); }
  size_t block_bytes() const { return head_bytes() * static_cast<size_t>(num_kv_heads); }
};

// The blocks of one layer: block b starts at base + b * layout.block_bytes().
struct KvLayerView {
  KvLayout layout;
  std::byte* base = nullptr;
  int32_t num_blocks = 0;
  float key_scale = 1;  // these two with layout.constant_scales; finite, above 0
  float value_scale = 1;
};

}  // namespace llm
