// IQ3_S: 256 weights as 64 points of a grid of 512, with signs, in 8 groups with a 4-bit scale
// each, scaled once more.
#pragma once

#include <cstdint>

#include "kernels/quant/iq_grids.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct IQ3_S {
  static constexpr int kBlockSize = 256;
  uint16_t scale;           // f16
  uint8_t points[64];       // of 4 elements: the low 8 bits of the index
  uint8_t points_high[8];   // bit p of byte g: the top bit of point 8g + p
  uint8_t signs[32];        // bit i % 8 of byte i / 8: element i is negative
  uint8_t group_scales[4];  // of 32 elements: even groups in the low nibbles

  constexpr uint32_t Point(int four) const {
    const int high = (points_high[four / 8] >> (four % 8)) & 1;
    return static_cast<uint32_t>(points[four] | high << 8);
  }
  constexpr int Signs(int eight) const { return signs[eight]; }
  constexpr int GroupScale(int group) const {
    return (group_scales[group / 2] >> (group % 2 * 4)) & 0xf;
  }

  // weight = (scale * (2 * group scale + 1)) * magnitude, with its sign
  LLM_DEVICE_FUNCTION void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const float group = scale_f32 * static_cast<float>(2 * GroupScale(i / 32) + 1);
      const int magnitude = 2 * CodeOf4(kIq3SGrid[Point(i / 4)], i % 4) + 1;
      dst[i] = group * static_cast<float>(WithSign(magnitude, Signs(i / 8), i % 8));
    }
  }
};
static_assert(sizeof(IQ3_S) == 110);

}  // namespace llm
