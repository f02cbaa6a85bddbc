// Q2_K: 256 weights of 2 bits in 16 groups; each group has a 4-bit scale and minimum, scaled once
// more for the block.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct Q2_K {
  static constexpr int kBlockSize = 256;
  uint8_t group_scales[16];  // of 16 consecutive elements: scale in the low nibble, min in the high
  // Each half of the block (128 elements) is four runs of 32: run r lies in bits 2r and 2r + 1 of
  // that half's 32 bytes.
  uint8_t quants[64];
  uint16_t scale;      // f16, of the group scales
  uint16_t min_scale;  // f16, of the group minimums

  constexpr int Quant(int i) const {
    return (quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
  }

  // weight = (scale * group scale) * quant - min_scale * group min
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    const float min_scale_f32 = F16ToF32(min_scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const int group = group_scales[i / 16];
      dst[i] = scale_f32 * static_cast<float>(group & 0xf) * static_cast<float>(Quant(i)) -
               min_scale_f32 * static_cast<float>(group >> 4);
    }
  }
};
static_assert(sizeof(Q2_K) == 84);

}  // namespace llm
