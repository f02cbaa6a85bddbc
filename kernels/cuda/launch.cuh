// The one way to start a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace llm {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
};

inline constexpr size_t kPlainSharedBytes = 48 * 1024;  // more must be asked for

template <typename Args>
cudaError_t Launch(void (*kernel)(Args), const LaunchShape& shape, cudaStream_t stream,
                   const Args& args) {
  if (shape.shared_bytes > kPlainSharedBytes) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes));
    if (error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace llm
