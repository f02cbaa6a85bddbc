// How packed weights lie in memory, the same for every instruction set.
//
// A weight is a sequence of tiles of 16 rows (kPackTileRows); lanes of a register are rows of a
// tile. Rows beyond the matrix are zero. A tile is 64-byte aligned and holds its quants first, then
// its scales, both in ascending columns.
//
// F32, F16: elements [cols, 16]. BF16: pairs of columns [ceil(cols / 2), 16, 2], an odd last one
// with 0, as an instruction that multiplies pairs reads them.
// Integer formats, per group of 32 columns: 8 steps of 4 columns; a step is 16 words of 4 bytes,
// one word a row. Quants are unsigned (q - zero is the file's): zero is 8, 16, 32, 128 for Q4_0,
// Q5_0, Q6_K, Q8_0, 12 for MXFP4 (whose nibbles are codes of kE2m1Doubled), else 0.
//   8 bits: 8 x 64 bytes, one a step.
//   Low nibbles: 4 x 64 bytes; vector i has step i in the low nibbles and step i + 4 in the high
//   ones. 5th bit (Q5_*): 64 bytes after the nibbles; bit s of a byte belongs to step s. 5th and
//   6th bit (Q6_K): 2 x 64 bytes; in vector p, bits 2t and 2t + 1 of a byte belong to step 4p + t.
// Scales: f16 scale[16] (then f16 min[16]: Q4_1, Q5_1) a group; K formats, per 256 columns: f16
// scale[16], f16 min_scale[16] (not Q6_K), then a group u8 scale[16], u8 min[16]; Q6_K: i8
// scale[2][16] (one each 16 columns); MXFP4: u8 e[16] a group, scale 2^(e - 127). weight = scale *
// (q - zero) + min, where min is -min_scale * u8 min for K formats.
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
inline constexpr int kNibbleBytes = kStepBytes * kGroupSteps / 2;
inline constexpr int kSuperBlock = 256;
inline constexpr int kSuperGroups = kSuperBlock / kTileGroup;
inline constexpr int kHalfRow = kPackTileRows * 2;  // bytes of one f16 for each row

struct TileShape {
  int64_t group_bytes = 0;    // quants of 32 columns; of one column for float formats
  int64_t scales_offset = 0;  // bytes of all quants
  int64_t tile_bytes = 0;
};

// REQUIRES: cols is a positive multiple of the format's block, small enough that 64 * cols fits.
TileShape GetTileShape(WeightFormat format, int64_t cols);

constexpr bool IsFloatFormat(WeightFormat format) {
  return format == WeightFormat::kF32 || format == WeightFormat::kF16 ||
         format == WeightFormat::kBF16;
}

// Writes row `row` of a packed weight as f32, each value as the format's Decode gives it. REQUIRES:
// 0 <= row < weight.rows.
void DecodePackedRow(const PackedWeight& weight, int64_t row, float* out);

}  // namespace llm
