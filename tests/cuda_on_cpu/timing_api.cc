// Calls that only measurements make.
#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const cudaError_t error = cudaMemsetAsync(memory, value, bytes, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}
