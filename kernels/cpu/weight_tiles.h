// How packed weights lie in memory, the same for every instruction set.
//
// A weight is a sequence of tiles of 16 rows (kPackTileRows); lanes of a register are rows of a
// tile. Rows beyond the matrix are zero. A tile is 64-byte aligned and holds its quants first, then
// its scales, both in ascending columns.
//
// F32, F16: elements [cols, 16]. BF16: pairs of columns [ceil(cols / 2), 16, 2], an odd last one
// with 0, as an instruction that multiplies pairs reads them.
// Integer formats, per group of 32 columns: 8 steps of 4 columns; a step is 16 words of 4 bytes,
// one word a row. Quants are unsigned: q - zero point is the file's (tile_formats.def).
//   Fields of 8, 4, 2 or 1 bits fill as many vectors of 64 bytes; step s lies at PlaceOf(bits, s).
//   3 bits are a field of 2 and one of 1 (the bit above), 5 of 4 and 1, 6 of 4 and 2.
//   TQ1_0: 104 bytes; in the first 64 five steps a byte, as in the file, then the last three as
//   n = 9 q5 + 3 q6 + q7 in 5 bits (LoadFiveBits).
//   Grids: a word a row of 4 indices of points (twice where points have 4 columns), then a word of
//   signs, bit s of byte j for column j of step s, then (IQ2_S, IQ3_S) the file's byte of upper
//   index bits; IQ1: the file's 16 bits in place of signs. Where the file has 7 signs for 8
//   columns, bits 25, 27, 29 and 31 of the signs hold other things: the upper bits of the four
//   indices (IQ2_XS) or the group's scale.
// Scales, for 32 columns: f16 scale[16] (then f16 min[16]: Q4_1, Q5_1); NVFP4: u8 scale[2][16], one
// each 16 columns; MXFP4: u8 e[16], scale 2^(e - 127). For 256 columns (Q1_0: 128): f16 scale[16],
// f16 min_scale[16] (Q4_K, Q5_K, Q2_K), then for each group
//   Q4_K, Q5_K: u8 scale[16], u8 min[16].   Q6_K: i8 scale[2][16].   IQ3_S: half a byte
//   Q2_K: u8 (scale | min << 4)[2][16].   IQ2_XS, IQ2_S: u8 (scale | scale << 4)[16]
// Q4_Z, Q8_Z: f16 scale[16], u8 zero[16]. Q8_F32: f32 scale[16] for 64 columns. NVFP4_F32, for 64
// columns: NVFP4's of both groups, f32 scale[16]. or, of 8 groups, 96 bytes of 6 bits each
// (LoadSixBits): IQ4_XS; twice for Q3_K; IQ1_M has two of 3 bits in one. weight = scale * (q -
// zero) + min, where min is -min_scale * min for K formats.
//
// F8_E4M3, MXFP8: bytes [cols, 16]; scales f32[16] for 64 columns, u8 exponent[16] for 32. BF16_24,
// for 32 columns: 8 steps of a word a row (the two values of 4 columns), then a word a row of
// masks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pack.h"

namespace llm {

// The layout's name, in packs: to be changed with any byte of it.
inline constexpr char kTileLayout[] = "tiles16-2";

inline constexpr int kStepCols = 4;
inline constexpr int kTileGroup = 32;  // columns of a quant group in a tile
inline constexpr int kGroupSteps = kTileGroup / kStepCols;
inline constexpr int kStepBytes = kPackTileRows * kStepCols;  // unpacked: 64
inline constexpr int kTernaryGroupBytes = kStepBytes + 40;
inline constexpr int kSuperBlock = 256;
inline constexpr int kSuperGroups = kSuperBlock / kTileGroup;
inline constexpr int kHalfRow = kPackTileRows * 2;      // bytes of one f16 for each row
inline constexpr int kFloatRow = kPackTileRows * 4;     // likewise, f32
inline constexpr int kSixBitBytes = 6 * kPackTileRows;  // of 8 numbers for each row

// Where a field of `width` bits of a step lies: in which of `width` vectors, how far up in its
// bytes.
struct FieldPlace {
  int vector;
  int shift;
};
constexpr FieldPlace PlaceOf(int width, int step) {
  if (width == 4) return {step % 4, step / 4 * 4};
  const int steps_a_vector = kGroupSteps / width;
  return {step / steps_a_vector, step % steps_a_vector * width};
}
// Bits of the first of the (at most two) fields that make `bits`.
constexpr int LowField(int bits) { return bits >= 8 ? 8 : bits >= 4 ? 4 : bits >= 2 ? 2 : 1; }

struct TileShape {
  int64_t group_bytes = 0;    // quants of 32 columns; of one column for float formats
  int64_t scales_offset = 0;  // bytes of all quants
  int64_t tile_bytes = 0;
};

// REQUIRES: cols is a positive multiple of the format's block, small enough that 64 * cols fits.
TileShape GetTileShape(WeightFormat format, int64_t cols);

// Writes row `row` of a packed weight as f32, each value as the format's Decode gives it. REQUIRES:
// 0 <= row < weight.rows.
void DecodePackedRow(const PackedWeight& weight, int64_t row, float* out);

}  // namespace llm
