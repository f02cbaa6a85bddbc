// MXFP8: 32 weights of 8 bits in floating point (E4M3) with one power of two as their scale (Open
// Compute Project, Microscaling Formats, 2023); the block is this library's own.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/quant/e4m3.h"

namespace llm {

struct MXFP8 {
  static constexpr int kBlockSize = 32;
  uint8_t exponent;  // the scale is 2^(exponent - 127), but 0 for an exponent of 0
  uint8_t codes[32];

  constexpr void Decode(float* dst) const {
    const float scale = std::bit_cast<float>(uint32_t{exponent} << 23);
    for (int i = 0; i < kBlockSize; ++i) dst[i] = E4M3Weight(codes[i]) * scale;
  }
};
static_assert(sizeof(MXFP8) == 33);

}  // namespace llm
