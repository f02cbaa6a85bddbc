// Q3_K: 256 weights of 3 bits around a zero point of 4, in 16 groups with a signed 6-bit scale
// each, scaled once more.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct Q3_K {
  static constexpr int kBlockSize = 256;
  uint8_t high_bits[32];  // bit i / 32 of byte i % 32 is the third bit of element i
  // Each half of the block (128 elements) is four runs of 32: run r has its low two bits in bits 2r
  // and 2r + 1 of that half's 32 bytes.
  uint8_t low_bits[64];
  // Scale plus 32 of group g (16 consecutive elements): its low 4 bits in byte g % 8 (groups 0-7 in
  // the low nibbles), its top 2 in bits 2 * (g / 4) and up of byte 8 + g % 4.
  uint8_t group_scales[12];
  uint16_t scale;  // f16

  constexpr int Quant(int i) const {
    const int low = (low_bits[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    return low | ((high_bits[i % 32] >> (i / 32)) & 1) << 2;
  }
  // Plus 32: 0 .. 63.
  constexpr int BiasedScale(int group) const {
    const int low = (group_scales[group % 8] >> (group / 8 * 4)) & 0xf;
    return low | ((group_scales[8 + group % 4] >> (group / 4 * 2)) & 3) << 4;
  }

  // weight = (scale * group scale) * (quant - 4)
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const float group_scale = scale_f32 * static_cast<float>(BiasedScale(i / 16) - 32);
      dst[i] = group_scale * static_cast<float>(Quant(i) - 4);
    }
  }
};
static_assert(sizeof(Q3_K) == 110);

}  // namespace llm
