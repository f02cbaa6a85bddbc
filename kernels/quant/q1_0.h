// Q1_0: 128 weights of one bit, plus or minus one scale.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct Q1_0 {
  static constexpr int kBlockSize = 128;
  uint16_t scale;      // f16
  uint8_t quants[16];  // bit i % 8 of byte i / 8

  constexpr int Quant(int i) const { return (quants[i / 8] >> (i % 8)) & 1; }

  // weight = quant ? scale : -scale
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) dst[i] = Quant(i) != 0 ? scale_f32 : -scale_f32;
  }
};
static_assert(sizeof(Q1_0) == 18);

}  // namespace llm
