// The integer weight formats as kernels read them: how a group of 32 columns is unpacked, and its
// scales.
//
// A format gives kMaxQuant, kZero, kGroup (columns that share a scale: 32 or 16), kHasMin, and
//   kScaleBytes                    (about) one group's share of the scales, to prefetch them
//   Unpack(quants, w)              w[8]: one register a step, for the kLanes rows that `quants` is
//   offset to Scales(scales, group, row)     of rows [row, row + kLanes)
// Layout: weight_tiles.h.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/weight_tiles.h"

#if defined(LLM_CPU_ISA_AVX512)
#include "kernels/cpu/dot_avx512.h"
#elif defined(LLM_CPU_ISA_AVX2)
#include "kernels/cpu/dot_avx2.h"
#else
#include "kernels/cpu/dot_generic.h"
#endif

namespace llm::LLM_CPU_ISA {

struct GroupScales {
  Floats scale[2];  // [1] only where kGroup is 16
  Floats min;       // only where kHasMin
};

LLM_SIMD void UnpackNibbles(const uint8_t* quants, Bytes* w) {
  for (int i = 0; i < 4; ++i) {
    const Bytes pair = LoadBytes(quants + i * kStepBytes);
    w[i] = ShiftRightAnd<0>(pair, 0x0f);
    w[i + 4] = ShiftRightAnd<4>(pair, 0x0f);
  }
}

// Bit s of a plane's byte is the fifth bit of step s.
LLM_SIMD void UnpackFiveBits(const uint8_t* quants, Bytes* w) {
  UnpackNibbles(quants, w);
  const Bytes plane = LoadBytes(quants + kNibbleBytes);
  w[0] = Or(w[0], ShiftLeftAnd<4>(plane, 0x10));
  w[1] = Or(w[1], ShiftLeftAnd<3>(plane, 0x10));
  w[2] = Or(w[2], ShiftLeftAnd<2>(plane, 0x10));
  w[3] = Or(w[3], ShiftLeftAnd<1>(plane, 0x10));
  w[4] = Or(w[4], ShiftRightAnd<0>(plane, 0x10));
  w[5] = Or(w[5], ShiftRightAnd<1>(plane, 0x10));
  w[6] = Or(w[6], ShiftRightAnd<2>(plane, 0x10));
  w[7] = Or(w[7], ShiftRightAnd<3>(plane, 0x10));
}

template <int kPlanes>  // 0: four bits, 1: five
struct NibbleQuants {
  static constexpr int kGroupBytes = kNibbleBytes + kPlanes * kStepBytes;
  static constexpr int kMaxQuant = kPlanes == 0 ? 15 : 31;
  static constexpr int kGroup = 32;
  LLM_SIMD void Unpack(const uint8_t* quants, Bytes* w) {
    if constexpr (kPlanes == 0) {
      UnpackNibbles(quants, w);
    } else {
      UnpackFiveBits(quants, w);
    }
  }
};

// Q4_0, Q5_0
template <int kPlanes>
struct CenteredNibbles : NibbleQuants<kPlanes> {
  static constexpr int kZero = kPlanes == 0 ? 8 : 16;
  static constexpr int kScaleBytes = kHalfRow;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t* scales, int64_t group, int row) {
    GroupScales r;
    r.scale[0] = LoadHalves(scales + group * kHalfRow + 2 * row);
    return r;
  }
};

// Q4_1, Q5_1
template <int kPlanes>
struct AffineNibbles : NibbleQuants<kPlanes> {
  static constexpr int kZero = 0;
  static constexpr int kScaleBytes = 2 * kHalfRow;
  static constexpr bool kHasMin = true;
  LLM_SIMD GroupScales Scales(const uint8_t* scales, int64_t group, int row) {
    GroupScales r;
    r.scale[0] = LoadHalves(scales + 2 * group * kHalfRow + 2 * row);
    r.min = LoadHalves(scales + (2 * group + 1) * kHalfRow + 2 * row);
    return r;
  }
};

// Q4_K, Q5_K. Products of an f16 and 8 bits are exact in f32.
template <int kPlanes>
struct SuperNibbles : NibbleQuants<kPlanes> {
  static constexpr int kZero = 0;
  static constexpr bool kHasMin = true;
  static constexpr int kSubBytes = 2 * kPackTileRows;
  static constexpr int kSuperBytes = 2 * kHalfRow + kSuperGroups * kSubBytes;
  static constexpr int kScaleBytes = kSuperBytes / kSuperGroups;
  LLM_SIMD GroupScales Scales(const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = scales + group / kSuperGroups * kSuperBytes;
    const uint8_t* sub = super + 2 * kHalfRow + group % kSuperGroups * kSubBytes + row;
    GroupScales r;
    r.scale[0] = MulFloats(LoadHalves(super + 2 * row), LoadUnsignedBytes(sub));
    r.min = NegFloats(
        MulFloats(LoadHalves(super + kHalfRow + 2 * row), LoadUnsignedBytes(sub + kPackTileRows)));
    return r;
  }
};

struct SixBits {  // Q6_K
  static constexpr int kGroupBytes = kNibbleBytes + 2 * kStepBytes;
  static constexpr int kMaxQuant = 63;
  static constexpr int kGroup = 16;
  static constexpr int kZero = 32;
  static constexpr bool kHasMin = false;
  static constexpr int kSubBytes = 2 * kPackTileRows;
  static constexpr int kSuperBytes = kHalfRow + kSuperGroups * kSubBytes;
  static constexpr int kScaleBytes = kSuperBytes / kSuperGroups;
  LLM_SIMD void Unpack(const uint8_t* quants, Bytes* w) {
    UnpackNibbles(quants, w);
    for (int p = 0; p < 2; ++p) {
      const Bytes plane = LoadBytes(quants + kNibbleBytes + p * kStepBytes);
      Bytes* four = w + 4 * p;
      four[0] = Or(four[0], ShiftLeftAnd<4>(plane, 0x30));
      four[1] = Or(four[1], ShiftLeftAnd<2>(plane, 0x30));
      four[2] = Or(four[2], ShiftRightAnd<0>(plane, 0x30));
      four[3] = Or(four[3], ShiftRightAnd<2>(plane, 0x30));
    }
  }
  LLM_SIMD GroupScales Scales(const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = scales + group / kSuperGroups * kSuperBytes;
    const uint8_t* sub = super + kHalfRow + group % kSuperGroups * kSubBytes + row;
    const Floats scale = LoadHalves(super + 2 * row);
    GroupScales r;
    r.scale[0] = MulFloats(scale, LoadSignedBytes(sub));
    r.scale[1] = MulFloats(scale, LoadSignedBytes(sub + kPackTileRows));
    return r;
  }
};

alignas(16) constexpr uint8_t kE2m1Quants[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                 12, 11, 10, 9,  8,  6,  4,  0};

// MXFP4: nibbles are codes of twice the value, which becomes an integer from 0 to 24.
struct E2m1Codes : NibbleQuants<0> {
  static constexpr int kMaxQuant = 31;  // 24 would do, but not divide the steps evenly on avx2
  static constexpr int kZero = 12;
  static constexpr int kScaleBytes = kPackTileRows;
  static constexpr bool kHasMin = false;
  LLM_SIMD void Unpack(const uint8_t* quants, Bytes* w) {
    UnpackNibbles(quants, w);
    for (int s = 0; s < kGroupSteps; ++s) w[s] = Lookup(kE2m1Quants, w[s]);
  }
  LLM_SIMD GroupScales Scales(const uint8_t* scales, int64_t group, int row) {
    GroupScales r;
    r.scale[0] = LoadExponents(scales + group * kPackTileRows + row);
    return r;
  }
};

struct EightBits : CenteredNibbles<0> {  // Q8_0
  static constexpr int kGroupBytes = kGroupSteps * kStepBytes;
  static constexpr int kMaxQuant = 255;
  static constexpr int kZero = 128;
  LLM_SIMD void Unpack(const uint8_t* quants, Bytes* w) {
    for (int s = 0; s < kGroupSteps; ++s) w[s] = LoadBytes(quants + s * kStepBytes);
  }
};

}  // namespace llm::LLM_CPU_ISA
