// IQ1_M: 256 weights as 32 points of a ternary grid of 2048, each moved up or down by an eighth, in
// 16 groups with a 3-bit scale each, scaled once more.
#pragma once

#include <cstdint>

#include "kernels/quant/iq_grids.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct IQ1_M {
  static constexpr int kBlockSize = 256;
  uint8_t points[32];  // of 8 elements: the low 8 bits of the index
  // Nibble p % 2 of byte p / 2 belongs to point p: the top 3 bits of the index, 1 bit: move down.
  uint8_t points_high[16];
  // 16 bits for every 64 elements, low byte first: four times 3 bits of group scale, then 4 bits of
  // the f16 scale of all, its low ones first.
  uint8_t scales[8];

  constexpr int Nibble(int eight) const {
    return (points_high[eight / 2] >> (eight % 2 * 4)) & 0xf;
  }
  constexpr uint32_t Point(int eight) const {
    return static_cast<uint32_t>(points[eight] | (Nibble(eight) & 7) << 8);
  }
  constexpr bool Down(int eight) const { return (Nibble(eight) & 8) != 0; }
  constexpr const void* GroupShort(int group) const { return &points_high[2 * group]; }
  constexpr int ScaleWord(int i) const { return scales[2 * i] | scales[2 * i + 1] << 8; }
  constexpr int GroupScale(int group) const {
    return (ScaleWord(group / 4) >> (group % 4 * 3)) & 7;
  }
  constexpr uint16_t Scale() const {  // f16
    int scale = 0;
    for (int i = 0; i < 4; ++i) scale |= (ScaleWord(i) >> 12) << (4 * i);
    return static_cast<uint16_t>(scale);
  }
  constexpr void SetScale(uint16_t scale) {
    for (int i = 0; i < 4; ++i) {
      const int high = (scale >> (4 * i)) & 0xf;
      scales[2 * i + 1] = static_cast<uint8_t>((scales[2 * i + 1] & 0xf) | high << 4);
    }
  }

  // weight = (scale * (2 * group scale + 1)) * (point - 1 +- 1/8)
  LLM_DEVICE_FUNCTION void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(Scale());
    for (int i = 0; i < kBlockSize; ++i) {
      const float group = scale_f32 * static_cast<float>(2 * GroupScale(i / 16) + 1);
      const int ternary = CodeOf8(kIq1Grid[Point(i / 8)], i % 8) - 1;
      dst[i] = group * (static_cast<float>(ternary) + (Down(i / 8) ? -0.125f : 0.125f));
    }
  }
};
static_assert(sizeof(IQ1_M) == 56);

}  // namespace llm
