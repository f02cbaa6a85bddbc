// How a launch gets from the emulated cudaLaunchKernelEx into a queue.
#pragma once

#include <cstddef>
#include <string>
#include <typeinfo>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/shadow/cuda_runtime_api.h"

namespace llm::cuda_on_cpu {

// Of a pointer to the kernel: its parameters, since functions have no names at run time.
std::string KernelName(const std::type_info& type);

struct KernelCall {
  const void* kernel;
  void (*call)(const void* kernel, const void* args);  // once for each thread of the grid
  const void* args;                                    // copied
  size_t args_bytes;
};
cudaError_t SubmitGrid(const GridShape& shape, cudaStream_t stream, const KernelCall& call);

}  // namespace llm::cuda_on_cpu
