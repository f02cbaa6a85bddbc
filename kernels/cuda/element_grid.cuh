// Grids with a thread for each element of a row: rows along x, blocks of a row along y.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace llm {

inline constexpr int kElementThreads = 256;

inline unsigned ElementBlocks(int64_t cols) {
  return static_cast<unsigned>((cols + kElementThreads - 1) / kElementThreads);
}

// This thread's column, which may lie behind the row.
__device__ __forceinline__ int64_t Element() {
  return static_cast<int64_t>(blockIdx.y) * kElementThreads + static_cast<int64_t>(threadIdx.x);
}

}  // namespace llm
