// One warp multiplies one tile, and shows what its lanes hold.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llm {

struct MatrixArgs {
  const uint16_t* a;    // [16, 16], bf16 or f16
  const uint16_t* b;    // [8, 16]: by columns
  uint32_t* fragments;  // [32, 6]: a's registers, then b's, of each lane
  float* d;             // [32, 4]: of each lane; added to
};
cudaError_t LaunchMatrix(const MatrixArgs& args, bool bf16, cudaStream_t stream);

struct ByteMatrixArgs {
  const uint32_t* a;  // [16, depth], four bytes each
  const uint32_t* b;  // [8, depth]: by columns
  int depth;          // bytes: 16 or 32
  int* d;             // [32, 4]: of each lane; added to
};
cudaError_t LaunchByteMatrix(const ByteMatrixArgs& args, cudaStream_t stream);

struct E4M3MatrixArgs {
  const uint32_t* a;  // [16, 32], four codes each
  const uint32_t* b;  // [8, 32]: by columns
  float* d;           // [32, 4]: of each lane; added to
};
cudaError_t LaunchE4M3Matrix(const E4M3MatrixArgs& args, cudaStream_t stream);

}  // namespace llm
