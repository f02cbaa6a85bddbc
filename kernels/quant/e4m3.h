// Floats of 8 bits as weights hold them (Open Compute Project, E4M3): a sign, 4 bits of exponent, 3
// of mantissa.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

constexpr uint8_t kE4M3Nan = 0x7f;  // without its sign

// Any code is a number, that of NaN 480, which the next code would be: kernels need no branch for
// it, and what reads checkpoints refuses it.
constexpr float E4M3Weight(uint8_t code) {
  // Seven places up these are the bits of an f16 whose exponent bias is 8 larger.
  const float magnitude = F16ToF32(static_cast<uint16_t>((code & 0x7f) << 7)) * 256.0f;
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace llm
