// Half precision as the toolkit's header of this name offers it, as far as kernels use it.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

// NOLINTBEGIN: the toolkit's names
struct __half {
  uint16_t bits;
};
inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline float __half2float(__half value) { return llm::F16ToF32(value.bits); }
// cvt.rn.f16.f32 gives one NaN, 0x7fff.
inline __half __float2half_rn(float value) {
  return {value != value ? uint16_t{0x7fff} : llm::F32ToF16(value)};
}
// NOLINTEND
