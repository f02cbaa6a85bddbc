// IQ4_NL: 32 weights of 4 bits that name one of sixteen values, one scale.
#pragma once

#include <cstdint>

#include "kernels/quant/iq4_values.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct IQ4_NL {
  static constexpr int kBlockSize = 32;
  uint16_t scale;      // f16
  uint8_t quants[16];  // element i in the low nibble of byte i, element i + 16 in the high one

  constexpr int Quant(int i) const { return i < 16 ? quants[i] & 0xf : quants[i - 16] >> 4; }

  // weight = scale * kIq4Values[quant]
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i)
      dst[i] = scale_f32 * static_cast<float>(kIq4Values[Quant(i)]);
  }
};
static_assert(sizeof(IQ4_NL) == 18);

}  // namespace llm
