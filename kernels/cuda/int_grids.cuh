// Blocks of grid formats for the kernels of integers; terms as in int_blocks.cuh.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/int_blocks.cuh"
#include "kernels/quant/iq1_m.h"
#include "kernels/quant/iq1_s.h"
#include "kernels/quant/iq2_s.h"
#include "kernels/quant/iq2_xs.h"
#include "kernels/quant/iq2_xxs.h"
#include "kernels/quant/iq3_s.h"
#include "kernels/quant/iq3_xxs.h"
#include "kernels/quant/iq_grids.h"

namespace llm {

// The codes of elements 4 half to 4 half + 3 of a point of 8, a nibble each.
__device__ __forceinline__ uint32_t CodesOf8(uint32_t point, int half) {
  const uint32_t p = point >> (4 * half);
  return (p & 3) | (p >> 8 & 3) << 4 | (p >> 2 & 3) << 8 | (p >> 10 & 3) << 12;
}
// Those of a point of 4.
__device__ __forceinline__ uint32_t CodesOf4(uint32_t point) {
  return (point & 0xf00f) | (point >> 8 & 0xf) << 4 | (point >> 4 & 0xf) << 8;
}

// Magnitudes of a grid with signs apart.
template <typename Block>
__device__ __forceinline__ uint32_t Iq2Quants(const Block& block, uint32_t point, int group,
                                              int quad) {
  constexpr ByteTable kTable = TableOf(kIq2Values);
  const uint32_t bytes = __byte_perm(kTable.words[0], 0, CodesOf8(point, quad % 2));
  const int signs = block.Signs(4 * group + quad / 2);
  return ApplySigns(bytes, static_cast<uint32_t>(signs) >> (quad % 2 * 4));
}

template <>
struct IntBlock<IQ2_XXS> : IntBlockShape<32, 0> {
  static __device__ __forceinline__ uint32_t Quants(const IQ2_XXS& block, int group, int quad) {
    return Iq2Quants(block, kIq2XxsGrid[block.Point(4 * group + quad / 2)], group, quad);
  }
  static __device__ __forceinline__ float Scale(const IQ2_XXS& block, int group, int) {
    return FromF16(block.scale) * (0.5f + static_cast<float>(block.GroupScale(group))) * 0.25f;
  }
};

template <typename Block>
struct Iq2Scaled : IntBlockShape<16, 0> {
  static __device__ __forceinline__ float Scale(const Block& block, int group, int half) {
    const auto n = static_cast<float>(block.GroupScale(2 * group + half));
    return FromF16(block.scale) * (0.5f + n) * 0.25f;
  }
};

template <>
struct IntBlock<IQ2_XS> : Iq2Scaled<IQ2_XS> {
  static __device__ __forceinline__ uint32_t Quants(const IQ2_XS& block, int group, int quad) {
    return Iq2Quants(block, kIq2XsGrid[block.Point(4 * group + quad / 2)], group, quad);
  }
};

template <>
struct IntBlock<IQ2_S> : Iq2Scaled<IQ2_S> {
  static __device__ __forceinline__ uint32_t Quants(const IQ2_S& block, int group, int quad) {
    return Iq2Quants(block, kIq2SGrid[block.Point(4 * group + quad / 2)], group, quad);
  }
};

template <>
struct IntBlock<IQ3_XXS> : IntBlockShape<32, 0> {
  static __device__ __forceinline__ uint32_t Quants(const IQ3_XXS& block, int group, int quad) {
    constexpr ByteTable kTable = TableOf(kIq3XxsValues);
    const uint32_t codes = CodesOf4(kIq3XxsGrid[block.Point(8 * group + quad)]) & 0x7777u;
    const int signs = block.Signs(4 * group + quad / 2);
    return ApplySigns(__byte_perm(kTable.words[0], kTable.words[1], codes),
                      static_cast<uint32_t>(signs) >> (quad % 2 * 4));
  }
  static __device__ __forceinline__ float Scale(const IQ3_XXS& block, int group, int) {
    return FromF16(block.scale) * (0.5f + static_cast<float>(block.GroupScale(group))) * 0.5f;
  }
};

template <>
struct IntBlock<IQ3_S> : IntBlockShape<32, 0> {
  static __device__ __forceinline__ uint32_t Quants(const IQ3_S& block, int group, int quad) {
    const uint32_t point = kIq3SGrid[block.Point(8 * group + quad)];
    const uint32_t codes =
        (point & 0xf) | (point & 0xf00) | (point & 0xf0) << 12 | (point & 0xf000) << 12;
    const int signs = block.Signs(4 * group + quad / 2);
    return ApplySigns(2 * codes + 0x01010101u, static_cast<uint32_t>(signs) >> (quad % 2 * 4));
  }
  static __device__ __forceinline__ float Scale(const IQ3_S& block, int group, int) {
    return FromF16(block.scale) * static_cast<float>(2 * block.GroupScale(group) + 1);
  }
};

// In eighths: a digit is moved by one.
template <typename Block>
__device__ __forceinline__ uint32_t Iq1Quants(const Block& block, int group, int quad) {
  constexpr int8_t kUpValues[3] = {-7, 1, 9};
  constexpr int8_t kDownValues[3] = {-9, -1, 7};
  constexpr ByteTable kUp = TableOf(kUpValues);
  constexpr ByteTable kDown = TableOf(kDownValues);
  const int eight = 4 * group + quad / 2;
  const uint32_t table = block.Down(eight) ? kDown.words[0] : kUp.words[0];
  return __byte_perm(table, 0, CodesOf8(kIq1Grid[block.Point(eight)], quad % 2));
}

template <>
struct IntBlock<IQ1_S> : IntBlockShape<32, 0> {
  static __device__ __forceinline__ uint32_t Quants(const IQ1_S& block, int group, int quad) {
    return Iq1Quants(block, group, quad);
  }
  static __device__ __forceinline__ float Scale(const IQ1_S& block, int group, int) {
    return FromF16(block.scale) * static_cast<float>(2 * block.GroupScale(group) + 1) * 0.125f;
  }
};

template <>
struct IntBlock<IQ1_M> : IntBlockShape<16, 0> {
  static __device__ __forceinline__ uint32_t Quants(const IQ1_M& block, int group, int quad) {
    return Iq1Quants(block, group, quad);
  }
  static __device__ __forceinline__ float Scale(const IQ1_M& block, int group, int half) {
    const auto odd = static_cast<float>(2 * block.GroupScale(2 * group + half) + 1);
    return FromF16(block.Scale()) * odd * 0.125f;
  }
};

}  // namespace llm
