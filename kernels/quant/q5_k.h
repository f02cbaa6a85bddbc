// Q5_K: as Q4_K with a fifth bit for each weight, kept apart from the nibbles.
#pragma once

#include <cstdint>

#include "kernels/quant/k_scales.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct Q5_K {
  static constexpr int kBlockSize = 256;
  uint16_t scale;      // f16, of the group scales
  uint16_t min_scale;  // f16, of the group minimums
  KScales group_scales;
  uint8_t high_bits[32];  // bit g of byte i is the fifth bit of element i of group g
  uint8_t quants[128];  // 32 bytes for each pair of groups: the even group in the low nibbles, the
                        // odd one in the high

  constexpr int Quant(int group, int i) const {
    const int byte = quants[group / 2 * 32 + i];
    const int nibble = group % 2 == 0 ? byte & 0xf : byte >> 4;
    return nibble | ((high_bits[i] >> group) & 1) << 4;
  }

  // weight = (scale * group scale) * quant - min_scale * group min
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    const float min_scale_f32 = F16ToF32(min_scale);
    for (int group = 0; group < 8; ++group) {
      const float group_scale = scale_f32 * static_cast<float>(group_scales.Scale(group));
      const float group_min = min_scale_f32 * static_cast<float>(group_scales.Min(group));
      for (int i = 0; i < 32; ++i) {
        *dst++ = group_scale * static_cast<float>(Quant(group, i)) - group_min;
      }
    }
  }
};
static_assert(sizeof(Q5_K) == 176);

}  // namespace llm
