// Q8_0: 32 signed weights of 8 bits, one scale.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct Q8_0 {
  static constexpr int kBlockSize = 32;
  uint16_t scale;  // f16
  int8_t quants[32];

  // weight = quant * scale
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) dst[i] = static_cast<float>(quants[i]) * scale_f32;
  }
};
static_assert(sizeof(Q8_0) == 34);

}  // namespace llm
