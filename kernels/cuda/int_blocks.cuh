// Weight blocks as the kernels of integers read them: four quants at a time, and the scale of a
// group.
//
// IntBlock<Block> gives kGroup (columns that share a scale: 32 or 16), kZero, kOffset, and of a
// block, `group` counting runs of 32 columns in it:
//   Quants(block, group, quad)  bytes of columns 4 quad to 4 quad + 3 of the run: quant + kZero,
//   -128
//                               to 127
//   Scale(block, group, half)   of the run's columns [16 half, 16 half + 16), or of all (half 0)
//   Offset(block, group, half)  kMin: what each weight is more than scale * quant; kWhole: what
//   each
//                               quant is short of, a whole number
// Products of an f16 with a few bits are exact, so that values are those of Decode.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/int_bytes.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/nvfp4_f32.h"
#include "kernels/quant/q1_0.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q4_z.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "kernels/quant/q8_f32.h"
#include "kernels/quant/tq1_0.h"
#include "kernels/quant/tq2_0.h"

namespace llm {

enum class IntOffset { kNone, kMin, kWhole };

template <typename Block>
struct IntBlock;

template <int kGroupIn, int kZeroIn, IntOffset kOffsetIn = IntOffset::kNone>
struct IntBlockShape {
  static constexpr int kGroup = kGroupIn;
  static constexpr int kZero = kZeroIn;
  static constexpr IntOffset kOffset = kOffsetIn;
};

// `scale` for all columns.
template <typename Block, int kZero>
struct HalfScaled : IntBlockShape<32, kZero> {
  static __device__ __forceinline__ float Scale(const Block& block, int, int) {
    return FromF16(block.scale);
  }
};
// The same beside a minimum.
template <typename Block>
struct HalfScaledWithMin : IntBlockShape<32, 0, IntOffset::kMin> {
  static __device__ __forceinline__ float Scale(const Block& block, int, int) {
    return FromF16(block.scale);
  }
  static __device__ __forceinline__ float Offset(const Block& block, int, int) {
    return FromF16(block.min);
  }
};

// Element i of 32 in the low nibble of byte i, element i + 16 in the high one.
template <typename Block>
__device__ __forceinline__ uint32_t NibblesOf(const uint8_t* quants, int quad) {
  return LoadWord<Block>(quants + quad % 4 * 4) >> (quad / 4 * 4) & 0x0f0f0f0fu;
}
template <typename Block>
__device__ __forceinline__ uint32_t FifthBits(const Block& block, int quad) {
  return SpreadBits(block.high_bits[quad / 2] >> (quad % 2 * 4)) << 4;
}

template <>
struct IntBlock<Q4_0> : HalfScaled<Q4_0, 8> {
  static __device__ __forceinline__ uint32_t Quants(const Q4_0& block, int, int quad) {
    return NibblesOf<Q4_0>(block.quants, quad);
  }
};

template <>
struct IntBlock<Q4_1> : HalfScaledWithMin<Q4_1> {
  static __device__ __forceinline__ uint32_t Quants(const Q4_1& block, int, int quad) {
    return NibblesOf<Q4_1>(block.quants, quad);
  }
};

template <>
struct IntBlock<Q5_0> : HalfScaled<Q5_0, 16> {
  static __device__ __forceinline__ uint32_t Quants(const Q5_0& block, int, int quad) {
    return NibblesOf<Q5_0>(block.quants, quad) | FifthBits(block, quad);
  }
};

template <>
struct IntBlock<Q5_1> : HalfScaledWithMin<Q5_1> {
  static __device__ __forceinline__ uint32_t Quants(const Q5_1& block, int, int quad) {
    return NibblesOf<Q5_1>(block.quants, quad) | FifthBits(block, quad);
  }
};

template <>
struct IntBlock<Q8_0> : HalfScaled<Q8_0, 0> {
  static __device__ __forceinline__ uint32_t Quants(const Q8_0& block, int, int quad) {
    return LoadWord<Q8_0>(block.quants + 4 * quad);
  }
};

template <>
struct IntBlock<Q8_F32> : IntBlockShape<32, 0> {
  static __device__ __forceinline__ uint32_t Quants(const Q8_F32& block, int group, int quad) {
    return LoadWord<Q8_F32>(block.quants + 32 * group + 4 * quad);
  }
  static __device__ __forceinline__ float Scale(const Q8_F32& block, int, int) {
    return block.scale;
  }
};

// Zero points are whole numbers of each group's own.
template <typename Block, int kStored>
struct ZeroScaled : IntBlockShape<32, 0, IntOffset::kWhole> {
  static __device__ __forceinline__ float Scale(const Block& block, int, int) {
    return FromF16(block.Scale());
  }
  static __device__ __forceinline__ float Offset(const Block& block, int, int) {
    return static_cast<float>(kStored - block.zero);
  }
};

template <>
struct IntBlock<Q4_Z> : ZeroScaled<Q4_Z, 0> {
  static __device__ __forceinline__ uint32_t Quants(const Q4_Z& block, int, int quad) {
    return NibblesOf<Q4_Z>(block.quants, quad);
  }
};

template <>
struct IntBlock<Q8_Z> : ZeroScaled<Q8_Z, 128> {
  static __device__ __forceinline__ uint32_t Quants(const Q8_Z& block, int, int quad) {
    return LoadWord<Q8_Z>(block.quants + 4 * quad) ^ 0x80808080u;
  }
};

// Runs of 32 in bits 2 run and 2 run + 1 of each half's 32 bytes.
template <typename Block>
__device__ __forceinline__ uint32_t TwoBitsOf(const uint8_t* quants, int group, int quad) {
  return LoadWord<Block>(quants + group / 4 * 32 + 4 * quad) >> (group % 4 * 2) & 0x03030303u;
}

template <>
struct IntBlock<Q2_K> : IntBlockShape<16, 0, IntOffset::kMin> {
  static __device__ __forceinline__ uint32_t Quants(const Q2_K& block, int group, int quad) {
    return TwoBitsOf<Q2_K>(block.quants, group, quad);
  }
  static __device__ __forceinline__ float Scale(const Q2_K& block, int group, int half) {
    return FromF16(block.scale) * static_cast<float>(block.group_scales[2 * group + half] & 0xf);
  }
  static __device__ __forceinline__ float Offset(const Q2_K& block, int group, int half) {
    return -(FromF16(block.min_scale) *
             static_cast<float>(block.group_scales[2 * group + half] >> 4));
  }
};

template <>
struct IntBlock<Q3_K> : IntBlockShape<16, 4> {
  static __device__ __forceinline__ uint32_t Quants(const Q3_K& block, int group, int quad) {
    const uint32_t high = LoadWord<Q3_K>(block.high_bits + 4 * quad) >> group & 0x01010101u;
    return TwoBitsOf<Q3_K>(block.low_bits, group, quad) | high << 2;
  }
  static __device__ __forceinline__ float Scale(const Q3_K& block, int group, int half) {
    return FromF16(block.scale) * static_cast<float>(block.BiasedScale(2 * group + half) - 32);
  }
};

// A scale and a minimum of 6 bits for each 32 columns.
template <typename Block>
struct KScaled : IntBlockShape<32, 0, IntOffset::kMin> {
  static __device__ __forceinline__ uint32_t Nibbles(const Block& block, int group, int quad) {
    return LoadWord<Block>(block.quants + group / 2 * 32 + 4 * quad) >> (group % 2 * 4) &
           0x0f0f0f0fu;
  }
  static __device__ __forceinline__ float Scale(const Block& block, int group, int) {
    return FromF16(block.scale) * static_cast<float>(block.group_scales.Scale(group));
  }
  static __device__ __forceinline__ float Offset(const Block& block, int group, int) {
    return -(FromF16(block.min_scale) * static_cast<float>(block.group_scales.Min(group)));
  }
};

template <>
struct IntBlock<Q4_K> : KScaled<Q4_K> {
  static __device__ __forceinline__ uint32_t Quants(const Q4_K& block, int group, int quad) {
    return Nibbles(block, group, quad);
  }
};

template <>
struct IntBlock<Q5_K> : KScaled<Q5_K> {
  static __device__ __forceinline__ uint32_t Quants(const Q5_K& block, int group, int quad) {
    const uint32_t fifth = LoadWord<Q5_K>(block.high_bits + 4 * quad) >> group & 0x01010101u;
    return Nibbles(block, group, quad) | fifth << 4;
  }
};

template <>
struct IntBlock<Q6_K> : IntBlockShape<16, 32> {
  static __device__ __forceinline__ uint32_t Quants(const Q6_K& block, int group, int quad) {
    const int half = group / 4;
    const int run = group % 4;
    const uint8_t* low = block.low_bits + half * 64 + run % 2 * 32 + 4 * quad;
    const uint32_t high = LoadWord<Q6_K>(block.high_bits + half * 32 + 4 * quad) >> (2 * run);
    return (LoadWord<Q6_K>(low) >> (run / 2 * 4) & 0x0f0f0f0fu) | (high & 0x03030303u) << 4;
  }
  static __device__ __forceinline__ float Scale(const Q6_K& block, int group, int half) {
    return FromF16(block.scale) * static_cast<float>(block.group_scales[2 * group + half]);
  }
};

template <>
struct IntBlock<IQ4_NL> : HalfScaled<IQ4_NL, 0> {
  static __device__ __forceinline__ uint32_t Quants(const IQ4_NL& block, int, int quad) {
    constexpr ByteTable kTable = TableOf(kIq4Values);
    return LookUp16(kTable, NibblesOf<IQ4_NL>(block.quants, quad));
  }
};

template <>
struct IntBlock<IQ4_XS> : IntBlockShape<32, 0> {
  static __device__ __forceinline__ uint32_t Quants(const IQ4_XS& block, int group, int quad) {
    constexpr ByteTable kTable = TableOf(kIq4Values);
    return LookUp16(kTable, NibblesOf<IQ4_XS>(block.quants + 16 * group, quad));
  }
  static __device__ __forceinline__ float Scale(const IQ4_XS& block, int group, int) {
    return FromF16(block.scale) * static_cast<float>(block.BiasedScale(group) - 32);
  }
};

template <>
struct IntBlock<MXFP4> : IntBlockShape<32, 0> {
  static __device__ __forceinline__ uint32_t Quants(const MXFP4& block, int, int quad) {
    constexpr ByteTable kTable = TableOf(kE2m1Doubled);
    return LookUp16(kTable, NibblesOf<MXFP4>(block.quants, quad));
  }
  static __device__ __forceinline__ float Scale(const MXFP4& block, int, int) {
    return block.HalfScale();
  }
};

// `Block` is where the quants lie, whatever holds it.
template <typename Block>
__device__ __forceinline__ uint32_t Nvfp4Quants(const NVFP4& block, int group, int quad) {
  constexpr ByteTable kTable = TableOf(kE2m1Doubled);
  const uint8_t* quants = block.quants + 16 * group + quad / 4 * 8 + quad % 2 * 4;
  return LookUp16(kTable, LoadWord<Block>(quants) >> (quad % 4 / 2 * 4) & 0x0f0f0f0fu);
}
__device__ __forceinline__ float Nvfp4HalfScale(const NVFP4& block, int group, int half) {
  return FromF16(static_cast<uint16_t>(block.ScaleCode(2 * group + half) << 7)) * 128.0f;
}

template <>
struct IntBlock<NVFP4> : IntBlockShape<16, 0> {
  static __device__ __forceinline__ uint32_t Quants(const NVFP4& block, int group, int quad) {
    return Nvfp4Quants<NVFP4>(block, group, quad);
  }
  static __device__ __forceinline__ float Scale(const NVFP4& block, int group, int half) {
    return Nvfp4HalfScale(block, group, half);
  }
};

template <>
struct IntBlock<NVFP4_F32> : IntBlockShape<16, 0> {
  static __device__ __forceinline__ uint32_t Quants(const NVFP4_F32& block, int group, int quad) {
    return Nvfp4Quants<NVFP4_F32>(block.block, group, quad);
  }
  static __device__ __forceinline__ float Scale(const NVFP4_F32& block, int group, int half) {
    return Nvfp4HalfScale(block.block, group, half) * block.scale;
  }
};

template <>
struct IntBlock<TQ1_0> : HalfScaled<TQ1_0, 1> {
  static __device__ __forceinline__ uint32_t Quants(const TQ1_0& block, int group, int quad) {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
      word |= static_cast<uint32_t>(block.Quant(32 * group + 4 * quad + i)) << (8 * i);
    }
    return word;
  }
};

template <>
struct IntBlock<TQ2_0> : HalfScaled<TQ2_0, 1> {
  static __device__ __forceinline__ uint32_t Quants(const TQ2_0& block, int group, int quad) {
    return TwoBitsOf<TQ2_0>(block.quants, group, quad);
  }
};

// A bit is 0 or 2 around a zero of 1.
template <>
struct IntBlock<Q1_0> : HalfScaled<Q1_0, 1> {
  static __device__ __forceinline__ uint32_t Quants(const Q1_0& block, int group, int quad) {
    return SpreadBits(block.quants[4 * group + quad / 2] >> (quad % 2 * 4)) << 1;
  }
};

}  // namespace llm
