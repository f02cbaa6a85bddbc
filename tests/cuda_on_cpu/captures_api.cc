// The calls of a host that captures its streams. Not modelled, and refused: events in a captured
// stream, copies of pageable memory.
#include <memory>
#include <utility>

#include "tests/cuda_on_cpu/captures.h"
#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"
#include "tests/cuda_on_cpu/graphs.h"

using llm::cuda_on_cpu::Capture;
using llm::cuda_on_cpu::Gpu;
using llm::cuda_on_cpu::Queue;

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  LLM_ENTER_CALL();
  std::swap(*mode, llm::cuda_on_cpu::thread_capture_mode());
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  if (stream == nullptr) return gpu.Remember(cudaErrorStreamCaptureUnsupported);
  Queue* queue = gpu.Find(stream);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (queue->capture != nullptr) return gpu.Remember(cudaErrorIllegalState);
  queue->capture = std::make_shared<Capture>();
  queue->capture->mode = mode;
  queue->capture->thread = std::this_thread::get_id();
  gpu.CountCapture();
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
  *graph = new CUgraph_st;
  (*graph)->work = std::move(capture->work);
  return cudaSuccess;
}
