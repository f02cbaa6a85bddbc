// IQ4_XS: 256 weights of 4 bits that name one of sixteen values, in 8 groups with a signed 6-bit
// scale each, scaled once more.
#pragma once

#include <cstdint>

#include "kernels/quant/iq4_values.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct IQ4_XS {
  static constexpr int kBlockSize = 256;
  uint16_t scale;         // f16
  uint16_t scales_high;   // bits 2g and 2g + 1: the top bits of group g's scale plus 32
  uint8_t scales_low[4];  // its low 4 bits: byte g / 2, even groups in the low nibbles
  uint8_t quants[128];    // 16 bytes a group: element i of it in the low nibble of byte i, element
                          // i + 16 in the high one

  constexpr int Quant(int i) const {
    const int byte = quants[i / 32 * 16 + i % 16];
    return i % 32 < 16 ? byte & 0xf : byte >> 4;
  }
  // Plus 32: 0 .. 63.
  constexpr int BiasedScale(int group) const {
    const int low = (scales_low[group / 2] >> (group % 2 * 4)) & 0xf;
    return low | ((scales_high >> (2 * group)) & 3) << 4;
  }

  // weight = (scale * group scale) * kIq4Values[quant]
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const float group_scale = scale_f32 * static_cast<float>(BiasedScale(i / 32) - 32);
      dst[i] = group_scale * static_cast<float>(kIq4Values[Quant(i)]);
    }
  }
};
static_assert(sizeof(IQ4_XS) == 136);

}  // namespace llm
