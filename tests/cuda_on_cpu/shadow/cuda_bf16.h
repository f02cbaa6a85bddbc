// bfloat16 as the toolkit's header of this name offers it, as far as kernels use it.
#pragma once

#include <cstdint>

#include "src/tensor/float_convert.h"

// NOLINTBEGIN: the toolkit's names
struct __nv_bfloat16 {
  uint16_t bits;
};
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline float __bfloat162float(__nv_bfloat16 value) { return llm::BF16ToF32(value.bits); }
// cvt.rn.bf16.f32 gives one NaN, 0x7fff.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return {value != value ? uint16_t{0x7fff} : llm::F32ToBF16(value)};
}
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
  return {__float2bfloat16_rn(low), __float2bfloat16_rn(high)};
}
// NOLINTEND
