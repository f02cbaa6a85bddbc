// BF16_24: 32 weights of which two in each four are not zero, the others left out; a format of this
// library's own.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct BF16_24 {
  static constexpr int kBlockSize = 32;
  uint16_t values[16];  // bf16: two for each four columns
  uint8_t masks[4];     // bit j of byte i: column 8 i + j has a value

  constexpr int Mask(int four) const { return masks[four / 2] >> (four % 2 * 4) & 0xf; }

  // Any mask decodes: the first column takes the first value, the last one the second, those
  // between them the one that their neighbour at the end leaves over.
  constexpr void Decode(float* dst) const {
    for (int four = 0; four < kBlockSize / 4; ++four, dst += 4) {
      const float first = BF16ToF32(values[2 * four]);
      const float second = BF16ToF32(values[2 * four + 1]);
      const int mask = Mask(four);
      dst[0] = (mask & 1) != 0 ? first : 0.0f;
      dst[1] = (mask & 2) == 0 ? 0.0f : (mask & 1) != 0 ? second : first;
      dst[2] = (mask & 4) == 0 ? 0.0f : (mask & 8) != 0 ? first : second;
      dst[3] = (mask & 8) != 0 ? second : 0.0f;
    }
  }
};
static_assert(sizeof(BF16_24) == 36);

}  // namespace llm
