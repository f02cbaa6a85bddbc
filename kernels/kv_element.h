// Single elements and scales of stored keys and values, as kernels/kv_layout.h defines them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/kv_layout.h"
#include "src/tensor/float_convert.h"

namespace llm {

// The region of one kv head in one block.
inline std::byte* KvHead(const KvLayerView& kv, int64_t block, int kv_head) {
  return kv.base + static_cast<size_t>(block) * kv.layout.block_bytes() +
         static_cast<size_t>(kv_head) * kv.layout.head_bytes();
}

// Position of dimension d of the key at `offset` in the block, in elements.
inline size_t KeyElement(const KvLayout& layout, int offset, int d) {
  const int tile = offset / kKeyTile;
  return static_cast<size_t>(tile * layout.head_dim + d) * kKeyTile +
         static_cast<size_t>(offset % kKeyTile);
}

inline size_t ValueElement(const KvLayout& layout, int offset, int d) {
  return static_cast<size_t>(offset) * static_cast<size_t>(layout.head_dim) +
         static_cast<size_t>(d);
}

template <typename T>
T LoadAs(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

// The scale of a token's head with the largest magnitude amax; NaN when one of the values is not
// finite or too large.
inline uint16_t KvScale(DType dtype, float amax, bool finite) {
  const uint16_t nan = F32ToF16(std::numeric_limits<float>::quiet_NaN());
  if (!finite) return nan;
  const uint16_t scale = F32ToF16(amax / (dtype == DType::kI8 ? 127.0f : 448.0f));
  return std::isfinite(F16ToF32(scale)) ? scale : nan;
}

// What is stored for x. `scale` is that of the token's head, 1 for dtypes without one.
inline void StoreKvElement(DType dtype, std::byte* matrix, size_t element, float x, float scale) {
  std::byte* p = matrix + element * DTypeBytes(dtype);
  if (dtype == DType::kF32) {
    std::memcpy(p, &x, sizeof(x));
  } else if (dtype == DType::kF16 || dtype == DType::kBF16) {
    const uint16_t bits = dtype == DType::kF16 ? F32ToF16(x) : F32ToBF16(x);
    std::memcpy(p, &bits, sizeof(bits));
  } else {
    const float scaled = scale > 0 ? x / scale : 0;  // scale 0 or NaN: nothing to represent
    const float clamped = std::clamp(std::nearbyint(scaled), -127.0f, 127.0f);
    *p = dtype == DType::kI8 ? static_cast<std::byte>(static_cast<int8_t>(clamped))
                             : static_cast<std::byte>(F32ToF8E4M3(scaled));
  }
}

inline float LoadKvElement(DType dtype, const std::byte* matrix, size_t element) {
  const std::byte* p = matrix + element * DTypeBytes(dtype);
  switch (dtype) {
    case DType::kF32:
      return LoadAs<float>(p);
    case DType::kF16:
      return F16ToF32(LoadAs<uint16_t>(p));
    case DType::kBF16:
      return BF16ToF32(LoadAs<uint16_t>(p));
    case DType::kF8E4M3:
      return F8E4M3ToF32(LoadAs<uint8_t>(p));
    default:
      return static_cast<float>(LoadAs<int8_t>(p));
  }
}

}  // namespace llm
