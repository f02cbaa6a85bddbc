// Sums and maxima over a warp or a block, each in one order that nothing else changes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace llm {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __forceinline__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ __forceinline__ int WarpIndex() { return static_cast<int>(threadIdx.x) / kWarp; }

__device__ __forceinline__ bool IsFinite(float x) {
  return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

// Every lane has the result.
__device__ __forceinline__ float WarpSum(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(kAllLanes, x, offset);
  return x;
}

// NaN is left out.
__device__ __forceinline__ float WarpMax(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, offset));
  }
  return x;
}

// Of one value a thread; every thread has the result. `scratch` holds a float for each warp and may
// be used again after the next barrier.
template <int kWarps>
__device__ __forceinline__ float BlockSum(float x, float* scratch) {
  x = WarpSum(x);
  if (Lane() == 0) scratch[WarpIndex()] = x;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kWarps; ++i) sum += scratch[i];
  return sum;
}

}  // namespace llm
