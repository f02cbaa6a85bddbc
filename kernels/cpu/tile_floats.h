// How kernels read weights that are floats with a scale of a group, or lack their zeros. Included
// by tile_formats.h.
//
// A struct gives kGroupBytes of 32 columns, kCols and kBytes of the scales as in tile_scales.h (no
// bytes: none), and Decode(quants, scales, group, row, out): 32 columns of rows [row, row +
// kLanes), kPackTileRows apart in `out`, where `quants` are the group's and `scales` the tile's.
// Layout: weight_tiles.h.
#pragma once

namespace llm::LLM_CPU_ISA {

// E4M3, 16 bytes a column.
struct E4M3Group {
  static constexpr int kGroupBytes = kTileGroup * kPackTileRows;
  LLM_SIMD void DecodeScaled(const uint8_t* quants, Floats scale, int row, float* out) {
    for (int k = 0; k < kTileGroup; ++k) {
      const Floats value = LoadE4M3Of256th(quants + k * kPackTileRows + row);
      StoreFloats(out + k * kPackTileRows, MulFloats(MulFloats(value, SetFloats(256.0f)), scale));
    }
  }
};

// F8_E4M3: an f32 for 64 columns.
struct FloatScaledE4M3 : E4M3Group {
  static constexpr int kCols = 2 * kTileGroup;
  static constexpr int kBytes = kFloatRow;
  LLM_SIMD void Decode(const uint8_t* quants, const uint8_t* scales, int64_t group, int row,
                       float* out) {
    DecodeScaled(quants, LoadFloatRow(scales + group / 2 * kFloatRow, row), row, out);
  }
};

// MXFP8: the exponent of a power of two for 32 columns.
struct ExponentScaledE4M3 : E4M3Group {
  static constexpr int kCols = kTileGroup;
  static constexpr int kBytes = kPackTileRows;
  LLM_SIMD void Decode(const uint8_t* quants, const uint8_t* scales, int64_t group, int row,
                       float* out) {
    const Words exponent = LoadByteWords(scales + group * kPackTileRows + row);
    DecodeScaled(quants, AsFloats(ShiftLeft(exponent, 23)), row, out);
  }
};

// BF16_24: 8 steps of a word a row (the first and the second value of four columns), then a word a
// row of masks, 4 bits a step.
struct HalfOfBF16 {
  static constexpr int kGroupBytes = (kGroupSteps + 1) * kStepBytes;
  static constexpr int kCols = kTileGroup;
  static constexpr int kBytes = 0;
  // All ones where bit n of the lane is set.
  LLM_SIMD Words HasBit(Words masks, int n) {
    return Sub(SetWords(0), And(ShiftRight(masks, n), 1));
  }
  LLM_SIMD Words Choose(Words where, Words yes, Words no) {
    return Xor(no, And(where, Xor(yes, no)));
  }
  LLM_SIMD void Decode(const uint8_t* quants, const uint8_t*, int64_t, int row, float* out) {
    const Words masks = AsWords(LoadBytes(quants + kGroupSteps * kStepBytes + row * kStepCols));
    for (int s = 0; s < kGroupSteps; ++s, out += kStepCols * kPackTileRows) {
      const Words pair = AsWords(LoadBytes(quants + s * kStepBytes + row * kStepCols));
      const Words first = ShiftLeft(pair, 16);
      const Words second = And(pair, -0x10000);
      Words has[kStepCols];
      for (int j = 0; j < kStepCols; ++j) has[j] = HasBit(masks, kStepCols * s + j);
      const Words columns[kStepCols] = {first, Choose(has[0], second, first),
                                        Choose(has[3], first, second), second};
      for (int j = 0; j < kStepCols; ++j) {
        StoreFloats(out + j * kPackTileRows, AsFloats(And(has[j], columns[j])));
      }
    }
  }
};

}  // namespace llm::LLM_CPU_ISA
