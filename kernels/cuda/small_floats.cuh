// Elements of keys, values and weights as f32 and back, to the bit as src/tensor/float_convert.h.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "src/tensor/dtype.h"

namespace llm {

__device__ __forceinline__ float FromF16(uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
__device__ __forceinline__ uint16_t ToF16(float x) { return __half_as_ushort(__float2half_rn(x)); }
__device__ __forceinline__ float FromBF16(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
__device__ __forceinline__ uint16_t ToBF16(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

// e4m3 without infinities; in integers, since sm_80 has no conversion.
__device__ __forceinline__ float FromF8(uint8_t v) {
  const uint32_t sign = static_cast<uint32_t>(v & 0x80u) << 24;
  const uint32_t exponent = (v >> 3) & 0xfu;
  const uint32_t mantissa = v & 0x7u;
  if (exponent == 15 && mantissa == 7) return __uint_as_float(sign | 0x7fc00000u);
  if (exponent == 0) {
    return __uint_as_float(sign | __float_as_uint(static_cast<float>(mantissa) * 0x1p-9f));
  }
  return __uint_as_float(sign | ((exponent + 120u) << 23) | (mantissa << 20));
}

__device__ __forceinline__ uint8_t ToF8(float x) {
  const uint32_t bits = __float_as_uint(x);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu);  // 448 and more
  if (magnitude < 0x3c800000u) {  // subnormal: the multiple of 2^-9 is in the low bits of a sum
    const float shifted = __uint_as_float(magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (__float_as_uint(shifted) - __float_as_uint(0x1p14f)));
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  const uint32_t code = (rounded - 0x3c000000u) >> 20;
  return static_cast<uint8_t>(sign | (code > 0x7eu ? 0x7eu : code));
}

// Element `i` of a matrix of `dtype`, without its scale.
__device__ __forceinline__ float LoadElement(DType dtype, const std::byte* matrix, int64_t i) {
  switch (dtype) {
    case DType::kF32:
      return reinterpret_cast<const float*>(matrix)[i];
    case DType::kF16:
      return FromF16(reinterpret_cast<const uint16_t*>(matrix)[i]);
    case DType::kBF16:
      return FromBF16(reinterpret_cast<const uint16_t*>(matrix)[i]);
    case DType::kF8E4M3:
      return FromF8(reinterpret_cast<const uint8_t*>(matrix)[i]);
    default:
      return static_cast<float>(reinterpret_cast<const int8_t*>(matrix)[i]);
  }
}

}  // namespace llm
