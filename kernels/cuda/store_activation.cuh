// Results as Activations: f32, int8 in groups of 32, or both (kernels/activations.h).
#pragma once

#include <cuda_runtime.h>

#include "kernels/activations.h"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {

static_assert(kActivationGroup == kWarp, "a warp quantises a group");

// Called by a whole warp: its lanes have neighbouring columns, `col` of lane 0 being a multiple of
// 32. Columns beyond the last are left out; with quants there are none.
__device__ __forceinline__ void StoreColumn(const Activations& out, int64_t row, int64_t col,
                                            float x) {
  const int64_t i = row * out.cols + col;
  if (out.values != nullptr && col < out.cols) out.values[i] = x;
  if (out.quants == nullptr) return;
  const bool finite = __all_sync(kAllLanes, IsFinite(x)) != 0;
  const float amax = WarpMax(fabsf(x));
  const float inverse = 127.0f / amax;
  const bool empty = !finite || !IsFinite(inverse);
  const int quant = empty ? 0 : static_cast<int>(rintf(x * inverse));
  int sum = quant;
  for (int offset = kActivationSumGroup / 2; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, offset);
  }
  out.quants[i] = static_cast<int8_t>(quant);
  if (col % kActivationSumGroup == 0) {
    out.sums[i / kActivationSumGroup] = static_cast<int16_t>(sum);
  }
  if (Lane() == 0) {
    const float scale = empty ? 0.0f : amax / 127.0f;
    out.scales[i / kActivationGroup] = finite ? scale : __uint_as_float(0x7fc00000u);
  }
}

}  // namespace llm
