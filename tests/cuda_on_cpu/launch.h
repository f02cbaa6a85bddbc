// How a launch gets from the emulated cudaLaunchKernelEx into a queue, or from a graph's node.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <typeinfo>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/shadow/cuda_runtime_api.h"

namespace llm::cuda_on_cpu {

// Of a pointer to the kernel: its parameters, since functions have no names at run time.
std::string KernelName(const std::type_info& type);

struct Kernel {
  const void* address;
  void (*call)(const void* kernel, const void* args);  // once for each thread of the grid
  size_t args_bytes;
};
cudaError_t SubmitGrid(const GridShape& shape, cudaStream_t stream, const Kernel& kernel,
                       const void* args);
// A stream's work, with the arguments as they are now.
std::function<void()> MakeGridWork(const GridShape& shape, const Kernel& kernel, const void* args);

cudaError_t LoadKernel(cudaFuncAttributes* attributes, const std::string& name,
                       const Kernel& kernel);

}  // namespace llm::cuda_on_cpu
