// An edge from each piece of work to the next is all the order that a graph has.
#include "kernels/cuda/launch_stream.h"

namespace llm {

cudaError_t GraphRecording::Add(const cudaKernelNodeParams& kernel) {
  cudaGraphNode_t node = nullptr;
  const size_t num_before = last_ == nullptr ? 0 : 1;
  const cudaError_t error = cudaGraphAddKernelNode(&node, graph_, &last_, num_before, &kernel);
  if (error == cudaSuccess) last_ = node;
  return error;
}

}  // namespace llm
