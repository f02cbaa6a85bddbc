// NVFP4_F32: an NVFP4 block beside the scale of its whole tensor; a format of this library's own.
#pragma once

#include <cstdint>

#include "kernels/quant/nvfp4.h"

namespace llm {

struct NVFP4_F32 {
  static constexpr int kBlockSize = NVFP4::kBlockSize;
  float scale;  // multiplies those of the groups
  NVFP4 block;

  constexpr int Quant(int i) const { return block.Quant(i); }
  constexpr int ScaleCode(int group) const { return block.ScaleCode(group); }

  // weight = (group scale / 2 * scale) * kE2m1Doubled[quant]
  constexpr void Decode(float* dst) const {
    for (int i = 0; i < kBlockSize; ++i) {
      const float half = F16ToF32(static_cast<uint16_t>(ScaleCode(i / 16) << 7)) * 128.0f;
      dst[i] = half * scale * static_cast<float>(kE2m1Doubled[Quant(i)]);
    }
  }
};
static_assert(sizeof(NVFP4_F32) == 40);

}  // namespace llm
