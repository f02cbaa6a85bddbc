// Calls that only measurements make. The emulated device has no clock: whatever lies between two
// events took a millisecond, so that nothing made of it can be mistaken for a measurement.
#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  for (const cudaEvent_t event : {begin, end}) {
    if (const cudaError_t error = cudaEventQuery(event); error != cudaSuccess) return error;
  }
  *milliseconds = 1;
  return cudaSuccess;
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const cudaError_t error = cudaMemsetAsync(memory, value, bytes, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}
