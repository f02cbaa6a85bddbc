// Q4_0: 32 weights of 4 bits around a fixed zero point of 8, one scale.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct Q4_0 {
  static constexpr int kBlockSize = 32;
  uint16_t scale;      // f16
  uint8_t quants[16];  // element i in the low nibble of byte i, element i + 16 in the high one

  // weight = (quant - 8) * scale
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < 16; ++i) {
      dst[i] = static_cast<float>((quants[i] & 0xf) - 8) * scale_f32;
      dst[i + 16] = static_cast<float>((quants[i] >> 4) - 8) * scale_f32;
    }
  }
};
static_assert(sizeof(Q4_0) == 18);

}  // namespace llm
