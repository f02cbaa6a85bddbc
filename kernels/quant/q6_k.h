// Q6_K: 256 weights of 6 bits around a zero point of 32, in 16 groups with an 8-bit scale each,
// scaled once more.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct Q6_K {
  static constexpr int kBlockSize = 256;
  // Each half of the block (128 elements) is four runs of 32. Run r of a half takes its low nibbles
  // from that half's 64 bytes of `low_bits` (runs 0 and 1 the low nibbles of bytes 0-63, runs 2 and
  // 3 the high ones) and its top two bits from bits 2r and 2r + 1 of that half's 32 bytes of
  // `high_bits`.
  uint8_t low_bits[128];
  uint8_t high_bits[64];
  int8_t group_scales[16];  // of 16 consecutive elements
  uint16_t scale;           // f16

  constexpr int Quant(int i) const {
    const int half = i / 128;
    const int run = i % 128 / 32;
    const int low_byte = low_bits[half * 64 + i % 64];
    const int low = run < 2 ? low_byte & 0xf : low_byte >> 4;
    const int high = (high_bits[half * 32 + i % 32] >> (2 * run)) & 3;
    return low | high << 4;
  }

  // weight = (scale * group scale) * (quant - 32)
  constexpr void Decode(float* dst) const {
    const float scale_f32 = F16ToF32(scale);
    for (int i = 0; i < kBlockSize; ++i) {
      const float group_scale = scale_f32 * static_cast<float>(group_scales[i / 16]);
      dst[i] = group_scale * static_cast<float>(Quant(i) - 32);
    }
  }
};
static_assert(sizeof(Q6_K) == 210);

}  // namespace llm
