// Stored keys and values as mma takes them: four neighbouring elements at a time, in words of 32
// bits that hold two.
//
// f16 has the values of F16, F8_E4M3 (times 2^-8), I8 and I4 exactly: queries and weights meet them
// as the sum of two f16, once a power of two has brought the largest near 2^15. BF16 meets the sum
// of three bf16, and F32 is such a sum itself. Either way products are exact in f32, and what parts
// leave out is as small as what f32 rounds.
#pragma once

#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {

template <DType kType>
constexpr bool kMeetsF16 = kType != DType::kF32&& kType != DType::kBF16;
template <DType kType>
constexpr int kMetParts = kMeetsF16<kType> ? 2 : 3;  // of a query or a weight
template <DType kType>
constexpr int kOwnParts = kType == DType::kF32 ? 3 : 1;  // of a key or a value
// What a stored element is times, beside its scale.
template <DType kType>
constexpr float kElementUnit = kType == DType::kF8E4M3 ? 256.0f : 1.0f;

// Elements of a row: words of bytes (nibbles have a byte each), pairs, or floats.
template <DType kType>
struct QuadOf {
  using Type = uint32_t;
};
template <>
struct QuadOf<DType::kF16> {
  using Type = uint2;
};
template <>
struct QuadOf<DType::kBF16> {
  using Type = uint2;
};
template <>
struct QuadOf<DType::kF32> {
  using Type = float4;
};
template <DType kType>
using Quad = typename QuadOf<kType>::Type;

__device__ __forceinline__ float Component(const float4& quad, int i) {
  return i == 0 ? quad.x : i == 1 ? quad.y : i == 2 ? quad.z : quad.w;
}

// Bytes 2 half and 2 half + 1 of `bytes` as two f16.
template <DType kType>
__device__ __forceinline__ uint32_t BytesToF16(uint32_t bytes, int half) {
  if constexpr (kType == DType::kF8E4M3) {
    const uint32_t high = __byte_perm(bytes, 0, half == 0 ? 0x1404 : 0x3424);
    const uint32_t magnitude = high >> 1 & 0x3f803f80u;
    const uint32_t nan = (magnitude + 0x00800080u) & 0x40004000u;  // of 0x7f alone
    return (high & 0x80008000u) | magnitude | nan;
  } else {  // 0x6400 is 1024, whose last bits are units
    const uint32_t biased = __byte_perm(bytes, 0x64646464u, half == 0 ? 0x4140 : 0x4342);
    return SubtractF16(biased, kType == DType::kI4 ? 0x64086408u : 0x64806480u);
  }
}

// Element `i` of the quads, of which the first two are one word of mma, the other two the next.
template <DType kType>
__device__ __forceinline__ void ToFragment(const Quad<kType> (&quads)[4], int i,
                                           uint32_t (&b)[kOwnParts<kType>][2]) {
  if constexpr (kType == DType::kF32) {
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      float low = Component(quads[2 * word], i);
      float high = Component(quads[2 * word + 1], i);
#pragma unroll
      for (int part = 0; part < 3; ++part) {
        b[part][word] = PackBF16(low, high);
        low -= LowOfBF16(b[part][word]);
        high -= HighOfBF16(b[part][word]);
      }
    }
  } else if constexpr (kType == DType::kF16 || kType == DType::kBF16) {
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const uint2& first = quads[2 * word];
      const uint2& second = quads[2 * word + 1];
      b[0][word] = __byte_perm(i < 2 ? first.x : first.y, i < 2 ? second.x : second.y,
                               i % 2 == 0 ? 0x5410 : 0x7632);
    }
  } else {
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const uint32_t bytes =
          __byte_perm(quads[2 * word], quads[2 * word + 1], i < 2 ? 0x5140 : 0x7362);
      b[0][word] = BytesToF16<kType>(bytes, i % 2);
    }
  }
}

// Sets elements that are not finite to zero; true when there were some.
__device__ __forceinline__ bool ZeroNonFinitePair(uint32_t exponent, uint32_t* pair) {
  bool found = false;
#pragma unroll
  for (int shift = 0; shift < 32; shift += 16) {
    if ((*pair >> shift & exponent) != exponent) continue;
    *pair &= ~(0xffffu << shift);
    found = true;
  }
  return found;
}
template <DType kType>
__device__ __forceinline__ bool ZeroNonFinite(Quad<kType>* quad) {
  bool found = false;
  if constexpr (kType == DType::kF32) {
    float* elements[4] = {&quad->x, &quad->y, &quad->z, &quad->w};
#pragma unroll
    for (float* element : elements) {
      if (IsFinite(*element)) continue;
      *element = 0;
      found = true;
    }
  } else if constexpr (kType == DType::kF16 || kType == DType::kBF16) {
    constexpr uint32_t kExponent = kType == DType::kF16 ? 0x7c00 : 0x7f80;
    found = ZeroNonFinitePair(kExponent, &quad->x);
    if (ZeroNonFinitePair(kExponent, &quad->y)) found = true;
  } else if constexpr (kType == DType::kF8E4M3) {
#pragma unroll
    for (int shift = 0; shift < 32; shift += 8) {
      if ((*quad >> shift & 0x7f) != 0x7f) continue;
      *quad &= ~(0xffu << shift);
      found = true;
    }
  }
  return found;
}

// The sum's parts, two values in a word.
template <DType kType>
__device__ __forceinline__ void SplitPair(float low, float high,
                                          uint32_t (&parts)[kMetParts<kType>]) {
#pragma unroll
  for (int part = 0; part < kMetParts<kType>; ++part) {
    if constexpr (kMeetsF16<kType>) {
      parts[part] = PackF16(low, high);
      low -= FromF16(static_cast<uint16_t>(parts[part] & 0xffff));
      high -= FromF16(static_cast<uint16_t>(parts[part] >> 16));
    } else {
      parts[part] = PackBF16(low, high);
      low -= LowOfBF16(parts[part]);
      high -= HighOfBF16(parts[part]);
    }
  }
}

// The power of two that brings `largest` to [2^14, 2^15), and its inverse; of a largest that is
// tiny, or not finite, some other one.
struct Normalizer {
  float up;
  float down;
};
__device__ __forceinline__ Normalizer NormalizerOf(float largest) {
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23 & 0xff);
  const int clamped = min(max(exponent, 15), 254);
  return {__uint_as_float(static_cast<uint32_t>(268 - clamped) << 23),
          __uint_as_float(static_cast<uint32_t>(clamped - 14) << 23)};
}

// sums += a b, the products of the smallest parts first.
template <DType kType>
__device__ __forceinline__ void MultiplyParts(const uint32_t (&a)[kMetParts<kType>][4],
                                              const uint32_t (&b)[kOwnParts<kType>][2],
                                              float (&sums)[4]) {
#pragma unroll
  for (int rank = kMetParts<kType> - 1; rank >= 0; --rank) {
#pragma unroll
    for (int own = 0; own < kOwnParts<kType>; ++own) {
      if (own > rank) continue;
      if constexpr (kMeetsF16<kType>) {
        MmaF16(sums, a[rank - own], b[own]);
      } else {
        MmaBF16(sums, a[rank - own], b[own]);
      }
    }
  }
}

}  // namespace llm
