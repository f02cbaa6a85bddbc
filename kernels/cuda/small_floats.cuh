// Elements of keys, values and weights as f32 and back. What the hardware has no instruction for on
// every target, fp8, is src/tensor/float_convert.h, whose constexpr functions device code may call.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "src/tensor/dtype.h"
#include "src/tensor/float_convert.h"

namespace llm {

__device__ __forceinline__ float FromF16(uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
__device__ __forceinline__ uint16_t ToF16(float x) { return __half_as_ushort(__float2half_rn(x)); }
__device__ __forceinline__ float FromBF16(uint16_t bits) { return BF16ToF32(bits); }
__device__ __forceinline__ uint16_t ToBF16(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

// Two in a word, the first in its low half.
__device__ __forceinline__ uint32_t PackF16(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ __forceinline__ uint32_t PackBF16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ __forceinline__ float LowOfBF16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float HighOfBF16(uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000u);
}
__device__ __forceinline__ uint32_t SubtractF16(uint32_t pair, uint32_t subtrahend) {
  const __half2 difference = __hsub2(*reinterpret_cast<const __half2*>(&pair),
                                     *reinterpret_cast<const __half2*>(&subtrahend));
  return *reinterpret_cast<const uint32_t*>(&difference);
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
      return F8E4M3ToF32(reinterpret_cast<const uint8_t*>(matrix)[i]);
    default:
      return static_cast<float>(reinterpret_cast<const int8_t*>(matrix)[i]);
  }
}

}  // namespace llm
