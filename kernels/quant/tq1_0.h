// TQ1_0: 256 ternary weights, five to a byte, one scale.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct TQ1_0 {
  static constexpr int kBlockSize = 256;
  // A byte is a fraction of 256 whose first digits in base 3 are its quants. Bytes 0-31 hold
  // elements 0-159: digit n of byte b is element 32n + b. Bytes 32-47 hold the next 80 alike (16n +
  // b), and `last` the last 16, four digits a byte (4n + b).
  uint8_t quants[48];
  uint8_t last[4];
  uint16_t scale;  // f16

  static constexpr int Digit(uint8_t byte, int n) {
    for (; n > 0; --n) byte = static_cast<uint8_t>(byte * 3);
    return byte * 3 >> 8;
  }
  // 0, 1 or 2, whatever the bytes are.
  constexpr int Quant(int i) const {
    if (i < 160) return Digit(quants[i % 32], i / 32);
    if (i < 240) return Digit(quants[32 + i % 16], (i - 160) / 16);
    return Digit(last[i % 4], (i - 240) / 4);
  }

  // weight = (quant - 1) * scale
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) dst[i] = static_cast<float>(Quant(i) - 1) * scale_f32;
  }
};
static_assert(sizeof(TQ1_0) == 54);

}  // namespace llm
