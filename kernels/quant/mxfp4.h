// MXFP4: 32 weights of 4 bits in floating point (E2M1) with one power of two as their scale (Open
// Compute Project, Microscaling Formats, 2023).
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/quant/e2m1.h"

namespace llm {

struct MXFP4 {
  static constexpr int kBlockSize = 32;
  uint8_t exponent;    // the scale is 2^(exponent - 127); 0xff, NaN, is refused when a file is read
  uint8_t quants[16];  // code of element i in the low nibble of byte i, of i + 16 in the high one

  // Half of the scale, as the codes are doubled: 2^(exponent - 128).
  constexpr float HalfScale() const {
    const uint32_t bits =
        exponent < 2 ? uint32_t{0x00200000} << exponent : (uint32_t{exponent} - 1) << 23;
    return std::bit_cast<float>(bits);
  }

  constexpr int Quant(int i) const { return i < 16 ? quants[i] & 0xf : quants[i - 16] >> 4; }

  constexpr void Decode(float* dst) const {
    const float half = HalfScale();
    for (int i = 0; i < 16; ++i) {
      dst[i] = static_cast<float>(kE2m1Doubled[quants[i] & 0xf]) * half;
      dst[i + 16] = static_cast<float>(kE2m1Doubled[quants[i] >> 4]) * half;
    }
  }
};
static_assert(sizeof(MXFP4) == 17);

}  // namespace llm
