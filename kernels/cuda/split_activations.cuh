// f32 activations as sums of 16-bit parts, in shared memory, as ldmatrix reads them.
//
// Weights that f16 has exactly meet two parts of f16, once a power of two has brought a group's
// largest near 2^15: what they leave out is at most 2^-23 of a value, or 2^-40 of the largest.
// bf16 weights meet three parts of bf16, of f32's range. Products are exact in f32 either way.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {

template <bool kF16>
constexpr int kSplitParts = kF16 ? 2 : 3;

// Rows of an odd number of 16 bytes: eight of them, as ldmatrix reads them, lie in all the banks.
// Within 16 columns, lane t's 4 t to 4 t + 3 stand where mma has 2 t, 2 t + 1, 2 t + 8 and 2 t + 9,
// the middle two the other way round where weights are even and odd ones.
template <bool kF16, int kRowsIn, int kColumns>
struct SplitRows {
  static constexpr int kRows = kRowsIn;
  static constexpr int kParts = kSplitParts<kF16>;
  static constexpr int kGroups = kColumns / kActivationGroup;

  uint16_t parts[kParts][kRows][kColumns + 8];
  float downs[kRows][kGroups];  // f16: what a group's products are to be multiplied by
};

struct GroupUnit {
  float up;
  float down;
};
// Of a largest below 2^-86, or not finite, some power of two that leaves no product subnormal.
__device__ __forceinline__ GroupUnit GroupUnitOf(float largest) {
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23 & 0xff);
  const int clamped = min(max(exponent, 41), 254);
  return {__uint_as_float(static_cast<uint32_t>(268 - clamped) << 23),
          __uint_as_float(static_cast<uint32_t>(clamped - 14) << 23)};
}

__device__ __forceinline__ float LargestOf(const float4& x) {
  return fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
}

// The first part of two values; `low` and `high` become what it leaves.
template <bool kF16>
__device__ __forceinline__ uint32_t TakePart(float* low, float* high) {
  if constexpr (kF16) {
    const uint32_t pair = PackF16(*low, *high);
    *low -= FromF16(static_cast<uint16_t>(pair & 0xffff));
    *high -= FromF16(static_cast<uint16_t>(pair >> 16));
    return pair;
  } else {
    const uint32_t pair = PackBF16(*low, *high);
    *low -= LowOfBF16(pair);
    *high -= HighOfBF16(pair);
    return pair;
  }
}

// kQuads times four neighbouring columns, from `col` on, of one group that kLanes neighbouring
// lanes have between them. Called by whole warps.
template <typename Format, int kQuads, int kRows, int kColumns>
__device__ __forceinline__ void StoreSplit(float4 (&x)[kQuads], int row, int col,
                                           SplitRows<Format::kF16, kRows, kColumns>* rows) {
  constexpr bool kF16 = Format::kF16;
  constexpr int kLanes = kActivationGroup / 4 / kQuads;
  if constexpr (kF16) {
    float largest = LargestOf(x[0]);
#pragma unroll
    for (int i = 1; i < kQuads; ++i) largest = fmaxf(largest, LargestOf(x[i]));
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, offset));
    }
    const GroupUnit by = GroupUnitOf(largest);
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      x[i] = {x[i].x * by.up, x[i].y * by.up, x[i].z * by.up, x[i].w * by.up};
    }
    if (Lane() % kLanes == 0) rows->downs[row][col / kActivationGroup] = by.down * Format::kUnit;
  }
  const int at = col / 16 * 16 + col % 16 / 4 * 2;
#pragma unroll
  for (int part = 0; part < kSplitParts<kF16>; ++part) {
    uint32_t words[2][kQuads];
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      words[0][i] = TakePart<kF16>(&x[i].x, Format::kEvenOdd ? &x[i].z : &x[i].y);
      words[1][i] = TakePart<kF16>(Format::kEvenOdd ? &x[i].y : &x[i].z, &x[i].w);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint16_t* to = &rows->parts[part][row][at + 8 * half];
      if constexpr (kQuads == 2) {
        *reinterpret_cast<uint2*>(to) = {words[half][0], words[half][1]};
      } else {
        *reinterpret_cast<uint32_t*>(to) = words[half][0];
      }
    }
  }
}

}  // namespace llm
