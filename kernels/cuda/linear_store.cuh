// Where a warp's sums of mma go: a tile of 16 outputs and 8 rows.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/warp_reduce.cuh"

namespace llm {

// Outputs from `output` and rows from `row` on, those that exist, with their bias. `Args` has
// outputs, bias, out and out_stride.
template <typename Args>
__device__ __forceinline__ void StoreSums(const Args& args, int64_t output, int64_t row,
                                          int64_t end_row, const float (&sums)[4]) {
  output += Lane() / 4;
  row += Lane() % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t at = output + 8 * half;
    if (at >= args.outputs) continue;
    const float bias = args.bias != nullptr ? args.bias[at] : 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (row + i < end_row) args.out[(row + i) * args.out_stride + at] = sums[2 * half + i] + bias;
    }
  }
}

}  // namespace llm
