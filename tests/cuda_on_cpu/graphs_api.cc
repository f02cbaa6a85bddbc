// Stream capture and graphs of the emulated runtime. A graph is a line: forks and joins of captured
// streams by events are not modelled, and refused where they would begin.
#include <cstddef>
#include <memory>
#include <utility>

#include "tests/cuda_on_cpu/captures.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"

using llm::cuda_on_cpu::Capture;
using llm::cuda_on_cpu::DeviceMemory;
using llm::cuda_on_cpu::Gpu;
using llm::cuda_on_cpu::GraphWork;
using llm::cuda_on_cpu::Queue;

namespace {

constexpr size_t kNodeBytes = 1024;  // of device memory that an executable graph takes for a node

}  // namespace

struct CUgraph_st {
  std::shared_ptr<const GraphWork> work;
};

struct CUgraphExec_st {
  std::shared_ptr<const GraphWork> work;
  void* memory = nullptr;
  cudaStream_t stream = nullptr;  // of the last launch, and where it ends there
  uint64_t ticket = 0;
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  if (stream == nullptr || !gpu.captures()) {
    return gpu.Remember(cudaErrorStreamCaptureUnsupported);
  }
  Queue* queue = gpu.Find(stream);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (queue->capture != nullptr) return gpu.Remember(cudaErrorIllegalState);
  queue->capture = std::make_shared<Capture>();
  queue->capture->mode = mode;
  queue->capture->thread = std::this_thread::get_id();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  Queue* queue = gpu.Find(stream);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (queue->capture == nullptr) return gpu.Remember(cudaErrorIllegalState);
  if (queue->capture->mode != cudaStreamCaptureModeRelaxed &&
      queue->capture->thread != std::this_thread::get_id()) {
    queue->capture->invalidated = true;
    return gpu.Remember(cudaErrorStreamCaptureWrongThread);
  }
  const std::shared_ptr<Capture> capture = std::exchange(queue->capture, nullptr);
  *graph = nullptr;
  if (capture->invalidated) return gpu.Remember(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::make_shared<const GraphWork>(std::move(capture->work))};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  LLM_ENTER_CALL();
  const Queue* queue = Gpu::Get().Find(stream);
  if (queue == nullptr) return Gpu::Get().Remember(cudaErrorInvalidResourceHandle);
  *status = queue->capture == nullptr     ? cudaStreamCaptureStatusNone
            : queue->capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                          : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  LLM_ENTER_CALL();
  if (graph == nullptr) return Gpu::Get().Remember(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  if (graph == nullptr) return gpu.Remember(cudaErrorInvalidValue);
  void* memory =
      DeviceMemory::Get().Allocate((graph->work->size() + 1) * kNodeBytes, Gpu::current_device());
  if (memory == nullptr) return gpu.Remember(cudaErrorMemoryAllocation);
  *exec = new CUgraphExec_st{graph->work, memory};
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  LLM_ENTER_CALL();
  if (exec == nullptr) return Gpu::Get().Remember(cudaErrorInvalidValue);
  DeviceMemory::Get().Free(exec->memory);
  delete exec;  // launches that are still to come share its work
  return cudaSuccess;
}

// One launch of a graph runs at a time, also where they are on several streams.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  Queue* queue = gpu.Find(stream);
  if (exec == nullptr) return gpu.Remember(cudaErrorInvalidValue);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (exec->stream != nullptr && exec->stream != stream) {
    gpu.Submit(queue, [before = exec->stream, ticket = exec->ticket] {
      Queue* other = Gpu::Get().Find(before);
      if (other != nullptr) Gpu::Get().RunUntil(other, ticket);
    });
  }
  for (const std::function<void()>& piece : *exec->work) {
    const cudaError_t error = gpu.Submit(queue, piece);
    if (error != cudaSuccess) return gpu.Remember(error);
  }
  exec->stream = stream;
  exec->ticket = queue->submitted;
  gpu.CountGraphLaunch();
  return cudaSuccess;
}
