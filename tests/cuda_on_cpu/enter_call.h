// First line of every function of the emulated API: takes the lock, counts the call, lets it fail.
#pragma once

#include <mutex>

#include "tests/cuda_on_cpu/gpu.h"

#define LLM_ENTER_CALL()                                                                       \
  const std::lock_guard<std::recursive_mutex> llm_enter_call_lock(                             \
      ::llm::cuda_on_cpu::Gpu::Get().mutex());                                                 \
  if (const cudaError_t llm_enter_call_error = ::llm::cuda_on_cpu::Gpu::Get().Enter(__func__); \
      llm_enter_call_error != cudaSuccess)                                                     \
  return llm_enter_call_error
