// How kernels read the scales of a group of 32 columns. Included by tile_formats.h.
//
// A struct gives kCols and kBytes (scales of 16 rows and kCols columns take kBytes bytes), kGroup
// (columns that share a scale: 32 or 16), kHasMin, and Scales(quants, scales, group, row) of rows
// [row, row + kLanes), where `quants` are the group's and `scales` the tile's. Products of an f16
// and few bits are exact in f32. Layout: weight_tiles.h.
#pragma once

#include "kernels/cpu/tile_grids.h"

namespace llm::LLM_CPU_ISA {

struct GroupScales {
  Floats scale[2];  // [1] only where kGroup is 16
  Floats min[2];    // only where kHasMin, or HasZeros; [1] as above
};

// One f16 for kColumns columns.
template <int kColumns>
struct HalfScales {
  static constexpr int kCols = kColumns;
  static constexpr int kBytes = kHalfRow;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    GroupScales r;
    r.scale[0] = LoadHalves(scales + group / (kCols / kTileGroup) * kHalfRow + 2 * row);
    return r;
  }
};

// Q4_1, Q5_1: f16 scale and minimum.
struct HalfScalesAndMins {
  static constexpr int kCols = kTileGroup;
  static constexpr int kBytes = 2 * kHalfRow;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = true;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    GroupScales r;
    r.scale[0] = LoadHalves(scales + group * kBytes + 2 * row);
    r.min[0] = LoadHalves(scales + group * kBytes + kHalfRow + 2 * row);
    return r;
  }
};

// Where Scales gives, in the place of minimums, the format's zero point less the group's own, whole
// numbers both: a weight is scale * (quant - zero + that), exactly.
template <typename Format>
concept HasZeros = requires {
  Format::kZeroBytes;
};

// Q4_Z, Q8_Z (kZero 128): f16 scale and whole zero point.
template <int kZero>
struct HalfScalesAndZeros {
  static constexpr int kZeroBytes = kPackTileRows;
  static constexpr int kCols = kTileGroup;
  static constexpr int kBytes = kHalfRow + kZeroBytes;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    const uint8_t* both = scales + group * kBytes;
    GroupScales r;
    r.scale[0] = LoadHalves(both + 2 * row);
    r.min[0] = AddFloats(NegFloats(LoadUnsignedBytes(both + kHalfRow + row)), SetFloats(kZero));
    return r;
  }
};

// An f16 (or two) for 256 columns, then kSubBytes for each group.
template <int kHalves, int kSubRows>
struct SuperScales {
  static constexpr int kCols = kSuperBlock;
  static constexpr int kSubBytes = kSubRows * kPackTileRows;
  static constexpr int kBytes = kHalves * kHalfRow + kSuperGroups * kSubBytes;
  LLM_SIMD const uint8_t* Super(const uint8_t* scales, int64_t group) {
    return scales + group / kSuperGroups * kBytes;
  }
  LLM_SIMD const uint8_t* Sub(const uint8_t* super, int64_t group, int row) {
    return super + kHalves * kHalfRow + group % kSuperGroups * kSubBytes + row;
  }
  LLM_SIMD Floats Half(const uint8_t* super, int row) { return LoadHalves(super + 2 * row); }
};

// Q4_K, Q5_K: a byte of scale and one of minimum a group.
struct ByteScalesAndMins : SuperScales<2, 2> {
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = true;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = Super(scales, group);
    const uint8_t* sub = Sub(super, group, row);
    GroupScales r;
    r.scale[0] = MulFloats(Half(super, row), LoadUnsignedBytes(sub));
    r.min[0] =
        NegFloats(MulFloats(Half(super + kHalfRow, row), LoadUnsignedBytes(sub + kPackTileRows)));
    return r;
  }
};

// Q6_K: a signed byte for each 16 columns.
struct SignedByteScales : SuperScales<1, 2> {
  static constexpr int kGroup = 16;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = Super(scales, group);
    const uint8_t* sub = Sub(super, group, row);
    GroupScales r;
    r.scale[0] = MulFloats(Half(super, row), LoadSignedBytes(sub));
    r.scale[1] = MulFloats(Half(super, row), LoadSignedBytes(sub + kPackTileRows));
    return r;
  }
};

LLM_SIMD Floats Nibble(Words bytes, int n) { return ToFloats(And(ShiftRight(bytes, 4 * n), 0xf)); }

// Q2_K: a byte for each 16 columns, scale in the low nibble, minimum in the high one.
struct NibbleScalesAndMins : SuperScales<2, 2> {
  static constexpr int kGroup = 16;
  static constexpr bool kHasMin = true;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = Super(scales, group);
    const uint8_t* sub = Sub(super, group, row);
    const Floats scale = Half(super, row);
    const Floats min = NegFloats(Half(super + kHalfRow, row));
    GroupScales r;
    for (int half = 0; half < 2; ++half) {
      const Words both = LoadByteWords(sub + half * kPackTileRows);
      r.scale[half] = MulFloats(scale, Nibble(both, 0));
      r.min[half] = MulFloats(min, Nibble(both, 1));
    }
    return r;
  }
};

// Number g of eight of 6 bits: the low four in a nibble of byte g / 2, the others in byte 4 + g /
// 4.
LLM_SIMD Words LoadSixBits(const uint8_t* p, int g, int row) {
  const Words low = LoadByteWords(p + g / 2 * kPackTileRows + row);
  const Words high = LoadByteWords(p + (4 + g / 4) * kPackTileRows + row);
  return Or(And(ShiftRight(low, g % 2 * 4), 0xf),
            ShiftLeft(And(ShiftRight(high, g % 4 * 2), 3), 4));
}

// IQ4_XS (kHalves 1), Q3_K (2): scale plus 32 in 6 bits, for each 32 or 16 columns.
template <int kHalves>
struct SixBitScales {
  static constexpr int kCols = kSuperBlock;
  static constexpr int kBytes = kHalfRow + kHalves * kSixBitBytes;
  static constexpr int kGroup = 32 / kHalves;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = scales + group / kSuperGroups * kBytes;
    const Floats scale = LoadHalves(super + 2 * row);
    GroupScales r;
    for (int half = 0; half < kHalves; ++half) {
      const Words biased = LoadSixBits(super + kHalfRow + half * kSixBitBytes,
                                       static_cast<int>(group % kSuperGroups), row);
      r.scale[half] = MulFloats(scale, AddFloats(ToFloats(biased), SetFloats(-32.0f)));
    }
    return r;
  }
};

// NVFP4: E4M3 without sign and NaN for each 16 columns. Seven places up it is an f16 whose exponent
// bias is 8 larger; the values are twice too large.
struct Fp8Scales {
  static constexpr int kCols = kTileGroup;
  static constexpr int kBytes = 2 * kPackTileRows;
  static constexpr int kGroup = 16;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    GroupScales r;
    for (int half = 0; half < 2; ++half) {
      const Words code = LoadByteWords(scales + (2 * group + half) * kPackTileRows + row);
      r.scale[half] = MulFloats(HalvesOf(ShiftLeft(And(code, 0x7f), 7)), SetFloats(128.0f));
    }
    return r;
  }
};

LLM_SIMD Floats LoadFloatRow(const uint8_t* p, int row) {
  return LoadFloats(reinterpret_cast<const float*>(p) + row);
}

// Q8_F32: an f32 for 64 columns.
struct FloatScales {
  static constexpr int kCols = 2 * kTileGroup;
  static constexpr int kBytes = kFloatRow;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    GroupScales r;
    r.scale[0] = LoadFloatRow(scales + group / 2 * kFloatRow, row);
    return r;
  }
};

// NVFP4_F32: 64 columns of NVFP4's, then an f32 that multiplies them.
struct ScaledFp8Scales {
  static constexpr int kCols = 2 * kTileGroup;
  static constexpr int kBytes = 2 * Fp8Scales::kBytes + kFloatRow;
  static constexpr int kGroup = 16;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t* quants, const uint8_t* scales, int64_t group,
                              int row) {
    const uint8_t* block = scales + group / 2 * kBytes;
    const Floats whole = LoadFloatRow(block + 2 * Fp8Scales::kBytes, row);
    GroupScales r = Fp8Scales::Scales(quants, block, group % 2, row);
    for (int half = 0; half < 2; ++half) r.scale[half] = MulFloats(r.scale[half], whole);
    return r;
  }
};

// MXFP4: the exponent of a power of two, in a byte, for 32 columns.
struct ExponentScales {
  static constexpr int kCols = kTileGroup;
  static constexpr int kBytes = kPackTileRows;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    GroupScales r;
    r.scale[0] = AsFloats(ShiftLeft(LoadByteWords(scales + group * kPackTileRows + row), 23));
    return r;
  }
};

// IQ2_XS, IQ2_S: d (n + 1/2) / 4, a nibble n for each 16 columns.
struct Iq2Scales : SuperScales<1, 1> {
  static constexpr int kGroup = 16;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = Super(scales, group);
    const Words both = LoadByteWords(Sub(super, group, row));
    const Floats scale = MulFloats(Half(super, row), SetFloats(0.25f));
    GroupScales r;
    for (int half = 0; half < 2; ++half)
      r.scale[half] = MulFloats(scale, AddFloats(Nibble(both, half), SetFloats(0.5f)));
    return r;
  }
};

// IQ2_XXS (kDivisor 4), IQ3_XXS (2): d (n + 1/2) / kDivisor, n in the spare bits of the signs.
template <typename Quants, int kDivisor>
struct SpareBitScales : HalfScales<kSuperBlock> {
  LLM_SIMD GroupScales Scales(const uint8_t* quants, const uint8_t* scales, int64_t group,
                              int row) {
    const Floats half = HalfScales::Scales(quants, scales, group, row).scale[0];
    const Floats n = ToFloats(SpareBits(Quants::Signs(quants, row)));
    GroupScales r;
    r.scale[0] =
        MulFloats(MulFloats(half, SetFloats(1.0f / kDivisor)), AddFloats(n, SetFloats(0.5f)));
    return r;
  }
};

// d (2 n + 1) / kDivisor
template <int kDivisor>
LLM_SIMD Floats OddScale(Floats half, Words n) {
  const Floats odd = FmaFloats(SetFloats(2.0f), ToFloats(n), SetFloats(1.0f));
  return MulFloats(MulFloats(half, SetFloats(1.0f / kDivisor)), odd);
}

// IQ3_S: a nibble for each 32 columns, even groups in the low ones.
struct Iq3Scales {
  static constexpr int kCols = kSuperBlock;
  static constexpr int kBytes = kHalfRow + kSuperGroups / 2 * kPackTileRows;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = scales + group / kSuperGroups * kBytes;
    const int g = static_cast<int>(group % kSuperGroups);
    const Words pair = LoadByteWords(super + kHalfRow + g / 2 * kPackTileRows + row);
    GroupScales r;
    r.scale[0] = OddScale<1>(LoadHalves(super + 2 * row), And(ShiftRight(pair, g % 2 * 4), 0xf));
    return r;
  }
};

// IQ1_S: 3 bits of the group's shorts; quants are eighths.
struct Iq1SScales : HalfScales<kSuperBlock> {
  LLM_SIMD GroupScales Scales(const uint8_t* quants, const uint8_t* scales, int64_t group,
                              int row) {
    const Words n = And(ShiftRight(Iq1SQuants::Shorts(quants, row), 12), 7);
    GroupScales r = HalfScales::Scales(quants, scales, group, row);
    r.scale[0] = OddScale<8>(r.scale[0], n);
    return r;
  }
};

// IQ1_M: twice 3 bits a group, for 16 columns each; quants are eighths.
struct Iq1MScales {
  static constexpr int kCols = kSuperBlock;
  static constexpr int kBytes = kHalfRow + kSixBitBytes;
  static constexpr int kGroup = 16;
  static constexpr bool kHasMin = false;
  LLM_SIMD GroupScales Scales(const uint8_t*, const uint8_t* scales, int64_t group, int row) {
    const uint8_t* super = scales + group / kSuperGroups * kBytes;
    const Words both = LoadSixBits(super + kHalfRow, static_cast<int>(group % kSuperGroups), row);
    const Floats half = LoadHalves(super + 2 * row);
    GroupScales r;
    r.scale[0] = OddScale<8>(half, And(both, 7));
    r.scale[1] = OddScale<8>(half, ShiftRight(both, 3));
    return r;
  }
};

}  // namespace llm::LLM_CPU_ISA
