// IQ1_S: 256 weights as 32 points of a ternary grid of 2048, all of a group moved up or down by an
// eighth, in 8 groups with a 3-bit scale each, scaled once more.
#pragma once

#include <cstdint>

#include "kernels/quant/iq_grids.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct IQ1_S {
  static constexpr int kBlockSize = 256;
  uint16_t scale;      // f16
  uint8_t points[32];  // of 8 elements: the low 8 bits of the index
  // A group of 32 each: four times the top 3 bits of an index, 3 bits of scale, 1 bit: move down.
  uint16_t shorts[8];

  constexpr uint32_t Point(int eight) const {
    const int high = (shorts[eight / 4] >> (eight % 4 * 3)) & 7;
    return static_cast<uint32_t>(points[eight] | high << 8);
  }
  constexpr bool Down(int eight) const { return shorts[eight / 4] >> 15 != 0; }
  constexpr const void* GroupShort(int group) const { return &shorts[group]; }
  constexpr int GroupScale(int group) const { return (shorts[group] >> 12) & 7; }

  // weight = (scale * (2 * group scale + 1)) * (point - 1 +- 1/8)
  LLM_DEVICE_FUNCTION void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const float group = scale_f32 * static_cast<float>(2 * GroupScale(i / 32) + 1);
      const int ternary = CodeOf8(kIq1Grid[Point(i / 8)], i % 8) - 1;
      dst[i] = group * (static_cast<float>(ternary) + (Down(i / 8) ? -0.125f : 0.125f));
    }
  }
};
static_assert(sizeof(IQ1_S) == 50);

}  // namespace llm
