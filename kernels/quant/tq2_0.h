// TQ2_0: 256 weights of 2 bits around a zero point of 1 (so that three of the four are ternary),
// one scale.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct TQ2_0 {
  static constexpr int kBlockSize = 256;
  // Each half of the block (128 elements) is four runs of 32: run r lies in bits 2r and 2r + 1 of
  // that half's 32 bytes.
  uint8_t quants[64];
  uint16_t scale;  // f16

  constexpr int Quant(int i) const {
    return (quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
  }

  // weight = (quant - 1) * scale
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) dst[i] = static_cast<float>(Quant(i) - 1) * scale_f32;
  }
};
static_assert(sizeof(TQ2_0) == 66);

}  // namespace llm
