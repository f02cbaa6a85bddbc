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
struct alignas(4) __half2 {
  __half x, y;
};
inline __half2 __floats2half2_rn(float low, float high) {
  return {__float2half_rn(low), __float2half_rn(high)};
}
// A float's rounding before shows in nothing: it has more than twice the bits.
inline __half2 __hsub2(__half2 a, __half2 b) {
  return __floats2half2_rn(__half2float(a.x) - __half2float(b.x),
                           __half2float(a.y) - __half2float(b.y));
}
// NOLINTEND
