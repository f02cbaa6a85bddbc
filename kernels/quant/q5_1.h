// Q5_1: 32 weights of 5 bits, one scale and one minimum; the fifth bits lie apart from the nibbles.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct Q5_1 {
  static constexpr int kBlockSize = 32;
  uint16_t scale;        // f16
  uint16_t min;          // f16
  uint8_t high_bits[4];  // bit i % 8 of byte i / 8 is the fifth bit of element i
  uint8_t quants[16];    // element i in the low nibble of byte i, element i + 16 in the high one

  constexpr int Quant(int i) const {
    const int nibble = i < 16 ? quants[i] & 0xf : quants[i - 16] >> 4;
    return nibble | ((high_bits[i / 8] >> (i % 8)) & 1) << 4;
  }

  // weight = quant * scale + min
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    const float min_f32 = F16ToF32(min);
    for (int i = 0; i < kBlockSize; ++i)
      dst[i] = static_cast<float>(Quant(i)) * scale_f32 + min_f32;
  }
};
static_assert(sizeof(Q5_1) == 24);

}  // namespace llm
