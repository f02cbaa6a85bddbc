// IQ2_XXS: 256 weights as 32 points of a grid of 256, with signs, in 8 groups with a 4-bit scale
// each, scaled once more.
#pragma once

#include <cstdint>

#include "kernels/quant/iq_grids.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct IQ2_XXS {
  static constexpr int kBlockSize = 256;
  uint16_t scale;  // f16
  struct Group {   // 32 elements
    uint8_t points[4];
    uint16_t signs_low, signs_high;  // 32 bits: four times seven signs, then the group's scale
  } groups[8];

  constexpr uint32_t Point(int eight) const { return groups[eight / 4].points[eight % 4]; }
  constexpr uint32_t Word(int group) const {
    return groups[group].signs_low | uint32_t{groups[group].signs_high} << 16;
  }
  constexpr int Signs(int eight) const { return EightSigns(Word(eight / 4) >> (eight % 4 * 7)); }
  constexpr int GroupScale(int group) const { return static_cast<int>(Word(group) >> 28); }

  // weight = (scale * (group scale + 0.5) / 4) * magnitude, with its sign
  LLM_DEVICE_FUNCTION void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const float group = scale_f32 * (0.5f + static_cast<float>(GroupScale(i / 32))) * 0.25f;
      const int magnitude = kIq2Values[CodeOf8(kIq2XxsGrid[Point(i / 8)], i % 8)];
      dst[i] = group * static_cast<float>(WithSign(magnitude, Signs(i / 8), i % 8));
    }
  }
};
static_assert(sizeof(IQ2_XXS) == 66);

}  // namespace llm
