// Weight blocks as f16, or as bf16 where they have its range, for kernels that meet f32 activations
// on tensor cores.
//
// SplitBlock<Block> gives kF16, kGroup, kHasMin, kUnit (what a weight is times, beside its scale),
// kEvenOdd, and
//   Quad(block, group, quad)  columns 4 quad to 4 quad + 3 of a run of 32, two in a word: the first
//                             two and the last, or (kEvenOdd) the even ones and the odd
//   Scale, Min(block, group, half)  as IntBlock's Scale and its Offset of kMin
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/cuda/int_grids.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/quant/bf16_24.h"
#include "kernels/quant/f8_e4m3.h"
#include "kernels/quant/mxfp8.h"

namespace llm {

// Integers: quants less their zero points, 9 bits at most.
template <typename Block>
struct SplitBlock {
  using Format = IntBlock<Block>;
  static constexpr bool kF16 = true;
  static constexpr int kGroup = Format::kGroup;
  static constexpr bool kHasMin = Format::kOffset == IntOffset::kMin;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kEvenOdd = true;

  // 0x6400 is 1,024, whose last bits are units; the quants' range is moved there, and back.
  static __device__ __forceinline__ uint2 Quad(const Block& block, int group, int quad) {
    const uint32_t bytes = Format::Quants(block, group, quad) ^ 0x80808080u;
    int zero = Format::kZero;
    if constexpr (Format::kOffset == IntOffset::kWhole) {
      zero = -static_cast<int>(Format::Offset(block, group, 0));
    }
    const uint32_t moved = static_cast<uint32_t>(0x6480 + zero) * 0x10001u;
    return {SubtractF16((bytes & 0x00ff00ffu) | 0x64006400u, moved),
            SubtractF16((bytes >> 8 & 0x00ff00ffu) | 0x64006400u, moved)};
  }
  static __device__ __forceinline__ float Scale(const Block& block, int group, int half) {
    return Format::Scale(block, group, half);
  }
  static __device__ __forceinline__ float Min(const Block& block, int group, int half) {
    if constexpr (kHasMin) return Format::Offset(block, group, half);
    return 0.0f;
  }
};

template <bool kF16In>
struct PlainSplit {
  static constexpr bool kF16 = kF16In;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kEvenOdd = false;
  template <typename Block>
  static __device__ __forceinline__ float Scale(const Block&, int, int) {
    return 1.0f;
  }
  template <typename Block>
  static __device__ __forceinline__ float Min(const Block&, int, int) {
    return 0.0f;
  }
};

// Of E4M3Weight's values a 256th: seven places up a code has the bits of an f16.
struct E4M3Split : PlainSplit<true> {
  static constexpr float kUnit = 256.0f;
  static constexpr bool kEvenOdd = true;
  static __device__ __forceinline__ uint2 Quad4(uint32_t codes) {
    return {(codes << 8 & 0x80008000u) | (codes << 7 & 0x3f803f80u),
            (codes & 0x80008000u) | (codes >> 1 & 0x3f803f80u)};
  }
};

template <>
struct SplitBlock<F8_E4M3> : E4M3Split {
  static __device__ __forceinline__ uint2 Quad(const F8_E4M3& block, int group, int quad) {
    return Quad4(LoadWord<F8_E4M3>(block.codes + 32 * group + 4 * quad));
  }
  static __device__ __forceinline__ float Scale(const F8_E4M3& block, int, int) {
    return block.scale;
  }
};

template <>
struct SplitBlock<MXFP8> : E4M3Split {
  static __device__ __forceinline__ uint2 Quad(const MXFP8& block, int, int quad) {
    return Quad4(LoadWord<MXFP8>(block.codes + 4 * quad));
  }
  static __device__ __forceinline__ float Scale(const MXFP8& block, int, int) {
    return __uint_as_float(static_cast<uint32_t>(block.exponent) << 23);
  }
};

// As Decode has it, for any mask.
template <>
struct SplitBlock<BF16_24> : PlainSplit<false> {
  static __device__ __forceinline__ uint2 Quad(const BF16_24& block, int, int quad) {
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
struct SplitBlock<BF16Run> : PlainSplit<false> {
  static __device__ __forceinline__ uint2 Quad(const BF16Run& block, int, int quad) {
    return {LoadWord<BF16Run>(block.values + 4 * quad),
            LoadWord<BF16Run>(block.values + 4 * quad + 2)};
  }
};

template <>
struct SplitBlock<F16Run> : PlainSplit<true> {
  static __device__ __forceinline__ uint2 Quad(const F16Run& block, int, int quad) {
    return {LoadWord<F16Run>(block.values + 4 * quad),
            LoadWord<F16Run>(block.values + 4 * quad + 2)};
  }
};

// Weights that are floats, with no more than a scale for 32 columns.
template <typename Block>
constexpr bool IsPlainSplit() {
  return std::is_base_of_v<PlainSplit<true>, SplitBlock<Block>> ||
         std::is_base_of_v<PlainSplit<false>, SplitBlock<Block>>;
}

}  // namespace llm
