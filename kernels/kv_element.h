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

// Position of dimension d of the key at `offset` in the block, in elements; in nibbles for kI4.
inline size_t KeyElement(const KvLayout& layout, int offset, int d) {
  const bool pairs = layout.dtype == DType::kI4;
  const int row =
      offset / kKeyTile * (pairs ? layout.head_dim / 2 : layout.head_dim) + (pairs ? d / 2 : d);
  const size_t position =
      static_cast<size_t>(row) * kKeyTile + static_cast<size_t>(offset % kKeyTile);
  return pairs ? 2 * position + static_cast<size_t>(d % 2) : position;
}

inline size_t ValueElement(const KvLayout& layout, int offset, int d) {
  const size_t first = static_cast<size_t>(offset) * static_cast<size_t>(layout.head_dim);
  if (layout.dtype != DType::kI4) return first + static_cast<size_t>(d);
  const int in_group = d % kKvGroup;
  return first + static_cast<size_t>(d - in_group + 2 * (in_group % 16) + in_group / 16);
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

// The scale of a group of kI4 whose value of the largest magnitude is `extreme`; NaN likewise.
inline uint16_t KvGroupScale(float extreme, bool finite) {
  const uint16_t nan = F32ToF16(std::numeric_limits<float>::quiet_NaN());
  if (!finite) return nan;
  if (extreme == 0) return 0;
  const uint16_t scale = F32ToF16(extreme / -8.0f);
  return std::isfinite(F16ToF32(scale)) ? scale : nan;
}

// REQUIRES: the other nibble's writer is this thread.
inline void StoreNibble(std::byte* matrix, size_t element, uint8_t code) {
  std::byte* p = matrix + element / 2;
  const int shift = element % 2 == 0 ? 0 : 4;
  *p = (*p & ~(std::byte{0xf} << shift)) | (std::byte{code} << shift);
}

// What is stored for x. `scale` is that of the token's head or group, 1 for dtypes without one.
inline void StoreKvElement(DType dtype, std::byte* matrix, size_t element, float x, float scale) {
  if (dtype == DType::kI4) {
    const float scaled = std::isfinite(scale) && scale != 0 ? x / scale : 0;
    const float clamped = std::clamp(std::nearbyint(scaled), -8.0f, 7.0f);
    return StoreNibble(matrix, element, static_cast<uint8_t>(clamped + 8));
  }
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
  if (dtype == DType::kI4) {
    const int byte = LoadAs<uint8_t>(matrix + element / 2);
    return static_cast<float>((element % 2 == 0 ? byte & 0xf : byte >> 4) - 8);
  }
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
