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

// What a block may ask for on the current device.
inline cudaError_t MostSharedBytes(int* bytes) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
}

// The limit is the process's, for each kernel: always the device's most, so that no launch lowers
// it under another thread's.
template <typename Args>
cudaError_t AllowSharedBytes(void (*kernel)(Args)) {
  int most = 0;
  if (const cudaError_t error = MostSharedBytes(&most); error != cudaSuccess) return error;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
}

template <typename Args>
cudaError_t Launch(void (*kernel)(Args), const LaunchShape& shape, cudaStream_t stream,
                   const Args& args) {
  if (shape.shared_bytes > kPlainSharedBytes) {
    if (const cudaError_t error = AllowSharedBytes(kernel); error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace llm
