// CUDA's error codes as absl::Status: every call goes through LLM_RETURN_IF_CUDA_ERROR.
#pragma once

#include <cuda_runtime_api.h>

#include "absl/status/status.h"

namespace llm {

// `what` starts the message. Out of memory is RESOURCE_EXHAUSTED, no device or driver UNAVAILABLE,
// anything else INTERNAL.
absl::Status CudaStatus(const char* what, cudaError_t error);

}  // namespace llm

#define LLM_RETURN_IF_CUDA_ERROR(what, call)                        \
  do {                                                              \
    if (const cudaError_t error_ = (call); error_ != cudaSuccess) { \
      return ::llm::CudaStatus(what, error_);                       \
    }                                                               \
  } while (false)
