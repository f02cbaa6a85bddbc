// Plain floating-point weights as blocks of one element, so that they need no special case
// anywhere.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

namespace llm {

struct F32 {
  static constexpr int kBlockSize = 1;
  float value;

  constexpr void Decode(float* dst) const { *dst = value; }
};
static_assert(sizeof(F32) == 4);

struct F16 {
  static constexpr int kBlockSize = 1;
  uint16_t value;

  constexpr void Decode(float* dst) const { *dst = F16ToF32(value); }
};
static_assert(sizeof(F16) == 2);

struct BF16 {
  static constexpr int kBlockSize = 1;
  uint16_t value;

  constexpr void Decode(float* dst) const { *dst = BF16ToF32(value); }
};
static_assert(sizeof(BF16) == 2);

}  // namespace llm
