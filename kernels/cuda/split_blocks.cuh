// Weight blocks as bf16, for kernels that meet f32 activations on tensor cores.
//
// SplitBlock<Block> gives kParts (a weight is the sum of so many bf16, times its scale), kGroup,
// kHasMin, and
//   Quad(block, group, quad, part)  columns 4 quad to 4 quad + 3 of a run of 32, two in a word
//   Scale, Min(block, group, half)  as IntBlock's Scale and its Offset of kMin
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/int_grids.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/quant/bf16_24.h"
#include "kernels/quant/f8_e4m3.h"
#include "kernels/quant/mxfp8.h"

namespace llm {

// Of floats with at most 8 bits of mantissa, exactly.
__device__ __forceinline__ uint32_t PackExact(float low, float high) {
  return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
}

// Integers: quants less their zero points, 9 bits at most.
template <typename Block>
struct SplitBlock {
  using Format = IntBlock<Block>;
  static constexpr int kParts = 1;
  static constexpr int kGroup = Format::kGroup;
  static constexpr bool kHasMin = Format::kOffset == IntOffset::kMin;

  static __device__ __forceinline__ uint2 Quad(const Block& block, int group, int quad, int) {
    const uint32_t bytes = Format::Quants(block, group, quad);
    float zero = static_cast<float>(Format::kZero);
    if constexpr (Format::kOffset == IntOffset::kWhole) zero = -Format::Offset(block, group, 0);
    float q[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      q[i] = static_cast<float>(static_cast<int8_t>(bytes >> (8 * i) & 0xff)) - zero;
    }
    return {PackExact(q[0], q[1]), PackExact(q[2], q[3])};
  }
  static __device__ __forceinline__ float Scale(const Block& block, int group, int half) {
    return Format::Scale(block, group, half);
  }
  static __device__ __forceinline__ float Min(const Block& block, int group, int half) {
    if constexpr (kHasMin) return Format::Offset(block, group, half);
    return 0.0f;
  }
};

struct PlainSplit {
  static constexpr int kParts = 1;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = false;
  template <typename Block>
  static __device__ __forceinline__ float Scale(const Block&, int, int) {
    return 1.0f;
  }
  template <typename Block>
  static __device__ __forceinline__ float Min(const Block&, int, int) {
    return 0.0f;
  }
};

// As E4M3Weight has it.
__device__ __forceinline__ float FromE4M3(uint32_t code) {
  const float magnitude = FromF16(static_cast<uint16_t>((code & 0x7f) << 7)) * 256.0f;
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}
__device__ __forceinline__ uint2 FromE4M3Quad(uint32_t codes) {
  return {PackExact(FromE4M3(codes), FromE4M3(codes >> 8)),
          PackExact(FromE4M3(codes >> 16), FromE4M3(codes >> 24))};
}

template <>
struct SplitBlock<F8_E4M3> : PlainSplit {
  static __device__ __forceinline__ uint2 Quad(const F8_E4M3& block, int group, int quad, int) {
    return FromE4M3Quad(LoadWord<F8_E4M3>(block.codes + 32 * group + 4 * quad));
  }
  static __device__ __forceinline__ float Scale(const F8_E4M3& block, int, int) {
    return block.scale;
  }
};

template <>
struct SplitBlock<MXFP8> : PlainSplit {
  static __device__ __forceinline__ uint2 Quad(const MXFP8& block, int, int quad, int) {
    return FromE4M3Quad(LoadWord<MXFP8>(block.codes + 4 * quad));
  }
  static __device__ __forceinline__ float Scale(const MXFP8& block, int, int) {
    return __uint_as_float(static_cast<uint32_t>(block.exponent) << 23);
  }
};

// As Decode has it, for any mask.
template <>
struct SplitBlock<BF16_24> : PlainSplit {
  static __device__ __forceinline__ uint2 Quad(const BF16_24& block, int, int quad, int) {
    const uint32_t first = block.values[2 * quad];
    const uint32_t second = block.values[2 * quad + 1];
    const int mask = block.Mask(quad);
    const uint32_t c0 = (mask & 1) != 0 ? first : 0;
    const uint32_t c1 = (mask & 2) == 0 ? 0 : (mask & 1) != 0 ? second : first;
    const uint32_t c2 = (mask & 4) == 0 ? 0 : (mask & 8) != 0 ? first : second;
    const uint32_t c3 = (mask & 8) != 0 ? second : 0;
    return {c0 | c1 << 16, c2 | c3 << 16};
  }
};

// Plain elements, 32 at a time.
struct BF16Run {
  static constexpr int kBlockSize = 32;
  uint16_t values[32];
};
struct F16Run {
  static constexpr int kBlockSize = 32;
  uint16_t values[32];
};

template <>
struct SplitBlock<BF16Run> : PlainSplit {
  static __device__ __forceinline__ uint2 Quad(const BF16Run& block, int, int quad, int) {
    return {LoadWord<BF16Run>(block.values + 4 * quad),
            LoadWord<BF16Run>(block.values + 4 * quad + 2)};
  }
};

// The upper 8 bits of mantissa, then the others: cut, not rounded, so that both have one sign.
template <>
struct SplitBlock<F16Run> : PlainSplit {
  static constexpr int kParts = 2;
  static __device__ __forceinline__ uint2 Quad(const F16Run& block, int, int quad, int part) {
    float w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = FromF16(block.values[4 * quad + i]);
      if (part == 1) w[i] -= __uint_as_float(__float_as_uint(w[i]) & 0xffff0000u);
    }
    return {PackExact(w[0], w[1]), PackExact(w[2], w[3])};
  }
};

}  // namespace llm
