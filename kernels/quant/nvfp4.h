// NVFP4: 64 weights of 4 bits (E2M1 floats) in 4 groups with an 8-bit float scale each. A scale of
// the whole tensor, where a file has one, is a tensor of its own.
#pragma once

#include <cstdint>

#include "kernels/quant/e2m1.h"
#include "src/tensor/float_convert.h"

namespace llm {

struct NVFP4 {
  static constexpr int kBlockSize = 64;
  uint8_t group_scales[4];  // E4M3 without a sign, of 16 consecutive elements
  uint8_t quants[32];       // 8 bytes a group: element i of it in the low nibble of byte i, element
                            // i + 8 in the high one

  constexpr int Quant(int i) const {
    const int byte = quants[i / 16 * 8 + i % 8];
    return i % 16 < 8 ? byte & 0xf : byte >> 4;
  }
  // The scale's 7 bits, to be read as E4M3 without NaN: the format has 0 for the code of NaN and
  // ignores the sign bit of every other one.
  constexpr int ScaleCode(int group) const {
    return group_scales[group] == 0x7f ? 0 : group_scales[group] & 0x7f;
  }

  // weight = (scale / 2) * kE2m1Doubled[quant]
  constexpr void Decode(float* dst) const {
    for (int i = 0; i < kBlockSize; ++i) {
      // E4M3 bits seven places up are those of an f16 whose exponent bias is 8 larger.
      const float half = F16ToF32(static_cast<uint16_t>(ScaleCode(i / 16) << 7)) * 128.0f;
      dst[i] = half * static_cast<float>(kE2m1Doubled[Quant(i)]);
    }
  }
};
static_assert(sizeof(NVFP4) == 36);

}  // namespace llm
