// The one way to start a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/cuda/launch_stream.h"

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

// Of the calling thread's device: what a launch should give work to.
inline cudaError_t CountMultiprocessors(int* count) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

// The kernel is loaded first, and by no launch of the graph: what may be wrong with it shows here.
template <typename Args>
cudaError_t Record(void (*kernel)(Args), const LaunchShape& shape, const Args& args,
                   GraphRecording* recording) {
  cudaFuncAttributes loaded = {};
  if (const cudaError_t error = cudaFuncGetAttributes(&loaded, kernel); error != cudaSuccess) {
    return error;
  }
  void* values[] = {const_cast<Args*>(&args)};
  cudaKernelNodeParams node = {};
  node.func = reinterpret_cast<void*>(kernel);
  node.gridDim = shape.grid;
  node.blockDim = shape.block;
  node.sharedMemBytes = static_cast<unsigned>(shape.shared_bytes);
  node.kernelParams = values;
  return recording->Add(node);
}

template <typename Args>
cudaError_t Launch(void (*kernel)(Args), const LaunchShape& shape, LaunchStream stream,
                   const Args& args) {
  if (shape.shared_bytes > kPlainSharedBytes) {
    if (const cudaError_t error = AllowSharedBytes(kernel); error != cudaSuccess) return error;
  }
  if (stream.recording != nullptr) return Record(kernel, shape, args, stream.recording);
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream.stream;
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace llm
