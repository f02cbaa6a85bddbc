// Q4_Z, Q8_Z: 32 unsigned weights of 4 or 8 bits, one scale and one whole zero point, as AWQ and
// asymmetric GPTQ checkpoints have them; formats of this library's own.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct ZeroedScale {
  uint8_t half[2];  // f16, low byte first: no byte lies between it and the quants
  uint8_t zero;     // the quant that is 0

  constexpr uint16_t Scale() const { return static_cast<uint16_t>(half[0] | half[1] << 8); }
  constexpr void SetScale(uint16_t scale) {
    half[0] = static_cast<uint8_t>(scale & 0xff);
    half[1] = static_cast<uint8_t>(scale >> 8);
  }
  // weight = scale * (quant - zero), exact in f32
  constexpr float Weight(int quant) const {
    return F16ToF32(Scale()) * static_cast<float>(quant - zero);
  }
};

struct Q4_Z : ZeroedScale {
  static constexpr int kBlockSize = 32;
  uint8_t quants[16];  // element i in the low nibble of byte i, element i + 16 in the high one

  constexpr int Quant(int i) const { return i < 16 ? quants[i] & 0xf : quants[i - 16] >> 4; }

  constexpr void Decode(float* dst) const {
    for (int i = 0; i < kBlockSize; ++i) dst[i] = Weight(Quant(i));
  }
};
static_assert(sizeof(Q4_Z) == 19);

struct Q8_Z : ZeroedScale {
  static constexpr int kBlockSize = 32;
  uint8_t quants[32];

  constexpr int Quant(int i) const { return quants[i]; }

  constexpr void Decode(float* dst) const {
    for (int i = 0; i < kBlockSize; ++i) dst[i] = Weight(Quant(i));
  }
};
static_assert(sizeof(Q8_Z) == 35);

}  // namespace llm
