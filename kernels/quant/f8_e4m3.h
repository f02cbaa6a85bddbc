// F8_E4M3: 64 weights of 8 bits in floating point, one scale; a format of this library's own, for
// checkpoints with a scale per tensor, per row or per block of both.
#pragma once

#include <cstdint>

#include "kernels/quant/e4m3.h"

namespace llm {

struct F8_E4M3 {
  static constexpr int kBlockSize = 64;
  float scale;
  uint8_t codes[64];

  // weight = code * scale
  constexpr void Decode(float* dst) const {
    for (int i = 0; i < kBlockSize; ++i) dst[i] = E4M3Weight(codes[i]) * scale;
  }
};
static_assert(sizeof(F8_E4M3) == 68);

}  // namespace llm
