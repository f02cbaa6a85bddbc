// Q8_F32: 64 signed weights of 8 bits, one f32 scale; a format of this library's own, for
// checkpoints whose scales have no exact form in f16.
#pragma once

#include <cstdint>

namespace llm {

struct Q8_F32 {
  static constexpr int kBlockSize = 64;
  float scale;
  int8_t quants[64];

  constexpr int Quant(int i) const { return quants[i] + 128; }

  // weight = quant * scale
  constexpr void Decode(float* dst) const {
    for (int i = 0; i < kBlockSize; ++i) dst[i] = static_cast<float>(quants[i]) * scale;
  }
};
static_assert(sizeof(Q8_F32) == 68);

}  // namespace llm
