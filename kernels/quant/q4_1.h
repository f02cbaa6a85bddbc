// Q4_1: 32 weights of 4 bits, one scale and one minimum.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct Q4_1 {
  static constexpr int kBlockSize = 32;
  uint16_t scale;      // f16
  uint16_t min;        // f16
  uint8_t quants[16];  // element i in the low nibble of byte i, element i + 16 in the high one

  // weight = quant * scale + min
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    const float min_f32 = F16ToF32(min);
    for (int i = 0; i < 16; ++i) {
      dst[i] = static_cast<float>(quants[i] & 0xf) * scale_f32 + min_f32;
      dst[i + 16] = static_cast<float>(quants[i] >> 4) * scale_f32 + min_f32;
    }
  }
};
static_assert(sizeof(Q4_1) == 20);

}  // namespace llm
