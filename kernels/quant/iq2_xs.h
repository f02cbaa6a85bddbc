// IQ2_XS: 256 weights as 32 points of a grid of 512, with signs, in 16 groups with a 4-bit scale
// each, scaled once more.
#pragma once

#include <cstdint>

#include "kernels/quant/iq_grids.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct IQ2_XS {
  static constexpr int kBlockSize = 256;
  uint16_t scale;           // f16
  uint16_t points[32];      // of 8 elements: index in the low 9 bits, then seven signs
  uint8_t group_scales[8];  // of 16 elements: even groups in the low nibbles

  constexpr uint32_t Point(int eight) const { return points[eight] & 0x1ff; }
  constexpr int Signs(int eight) const { return EightSigns(points[eight] >> 9); }
  constexpr int GroupScale(int group) const {
    return (group_scales[group / 2] >> (group % 2 * 4)) & 0xf;
  }

  // weight = (scale * (group scale + 0.5) / 4) * magnitude, with its sign
  LLM_DEVICE_FUNCTION void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const float group = scale_f32 * (0.5f + static_cast<float>(GroupScale(i / 16))) * 0.25f;
      const int magnitude = kIq2Values[CodeOf8(kIq2XsGrid[Point(i / 8)], i % 8)];
      dst[i] = group * static_cast<float>(WithSign(magnitude, Signs(i / 8), i % 8));
    }
  }
};
static_assert(sizeof(IQ2_XS) == 74);

}  // namespace llm
