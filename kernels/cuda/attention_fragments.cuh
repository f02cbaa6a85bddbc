// Stored keys and values as mma takes them, and what meets them.
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

// Of elements smaller than 16 bits, ldmatrix turns over two neighbours at a time: even ones make
// one matrix of mma, odd ones the next.
template <DType kType>
constexpr bool kPaired = DTypeBits(kType) < 16;

// Where element c % 2 of a lane's results stands among the 32 columns that four matrices have.
template <DType kType>
__device__ __forceinline__ int ColumnOf(int matrix, int c) {
  const int t = Lane() % 4;
  if (!kPaired<kType>) return 8 * matrix + 2 * t + c % 2;
  return 16 * (matrix / 2) + 4 * t + 2 * (c % 2) + matrix % 2;
}

// Bytes 0 and 2 of a word, or 1 and 3, as two f16.
template <DType kType>
__device__ __forceinline__ uint32_t BytesToF16(uint32_t word, int odd) {
  if constexpr (kType == DType::kF8E4M3) {
    const uint32_t high = (odd == 0 ? word << 8 : word) & 0xff00ff00u;
    const uint32_t magnitude = high >> 1 & 0x3f803f80u;
    const uint32_t nan = (magnitude + 0x00800080u) & 0x40004000u;  // of 0x7f alone
    return (high & 0x80008000u) | magnitude | nan;
  } else {  // 0x6400 is 1024, whose last bits are units; I8 becomes 0 to 255 first
    const uint32_t biased =
        __byte_perm(word ^ 0x80808080u, 0x64646464u, odd == 0 ? 0x4240 : 0x4341);
    return SubtractF16(biased, 0x64806480u);
  }
}
// The nibbles of I4 at bits `shift` and 16 + `shift`.
__device__ __forceinline__ uint32_t NibblesToF16(uint32_t word, int shift) {
  return SubtractF16((word >> shift & 0x000f000fu) | 0x64006400u, 0x64086408u);
}

__device__ __forceinline__ void SplitF32(float low, float high, uint32_t (&b)[3][2], int word) {
#pragma unroll
  for (int part = 0; part < 3; ++part) {
    b[part][word] = PackBF16(low, high);
    low -= LowOfBF16(b[part][word]);
    high -= HighOfBF16(b[part][word]);
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
// The same of a matrix as mma takes it.
template <DType kType>
__device__ __forceinline__ bool ZeroNonFinite(uint32_t (&b)[kOwnParts<kType>][2]) {
  bool found = false;
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    const uint32_t before = b[0][word];
    if (!ZeroNonFinitePair(kMeetsF16<kType> ? 0x7c00 : 0x7f80, &b[0][word])) continue;
    found = true;
    const uint32_t kept = (before & 0xffff) == (b[0][word] & 0xffff) ? 0xffffu : 0u;
    const uint32_t mask = kept | (before >> 16 == b[0][word] >> 16 ? 0xffff0000u : 0u);
#pragma unroll
    for (int part = 1; part < kOwnParts<kType>; ++part) b[part][word] &= mask;
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
