// IQ3_XXS: 256 weights as 64 points of a grid of 256, with signs, in 8 groups with a 4-bit scale
// each, scaled once more.
#pragma once

#include <cstdint>

#include "kernels/quant/iq_grids.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct IQ3_XXS {
  static constexpr int kBlockSize = 256;
  uint16_t scale;      // f16
  uint8_t points[64];  // of 4 elements
  struct Word {        // 32 bits a group: four times seven signs, then the group's scale
    uint16_t low, high;
  } words[8];

  constexpr uint32_t Point(int four) const { return points[four]; }
  constexpr uint32_t WordOf(int group) const {
    return words[group].low | uint32_t{words[group].high} << 16;
  }
  constexpr int Signs(int eight) const { return EightSigns(WordOf(eight / 4) >> (eight % 4 * 7)); }
  constexpr int GroupScale(int group) const { return static_cast<int>(WordOf(group) >> 28); }

  // weight = (scale * (group scale + 0.5) / 2) * magnitude, with its sign
  LLM_DEVICE_FUNCTION void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const float group = scale_f32 * (0.5f + static_cast<float>(GroupScale(i / 32))) * 0.5f;
      const int magnitude = kIq3XxsValues[CodeOf4(kIq3XxsGrid[Point(i / 4)], i % 4)];
      dst[i] = group * static_cast<float>(WithSign(magnitude, Signs(i / 8), i % 8));
    }
  }
};
static_assert(sizeof(IQ3_XXS) == 98);

}  // namespace llm
