// Streams and events of the emulated runtime.
#include <cstdint>
#include <memory>

#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"

using llm::cuda_on_cpu::Capture;
using llm::cuda_on_cpu::Gpu;
using llm::cuda_on_cpu::Queue;

// A place in a stream's work: done when the stream has come so far. Never recorded means done.
struct CUevent_st {
  int device = 0;  // that it was created for
  uint64_t stream_id = 0;
  uint64_t ticket = 0;
  std::weak_ptr<Capture> capture;  // that it was recorded in last
  bool captured = false;           // also when that has ended
};

namespace {

cudaError_t AfterRunning() {
  Gpu& gpu = Gpu::Get();
  return gpu.fault().empty() ? cudaSuccess : gpu.Remember(cudaErrorIllegalAddress);
}

// A captured event is a place in no stream's work: who asks for it ends the capture.
cudaError_t RefuseCaptured(const CUevent_st& event) {
  if (!event.captured) return cudaSuccess;
  if (const auto capture = event.capture.lock()) capture->invalidated = true;
  return Gpu::Get().Remember(cudaErrorCapturedEvent);
}

void RunUntilEvent(const CUevent_st& event) {
  Queue* queue = Gpu::Get().FindById(event.stream_id);
  if (queue != nullptr) Gpu::Get().RunUntil(queue, event.ticket);
}

}  // namespace

cudaError_t cudaDeviceSynchronize() {
  LLM_ENTER_CALL();
  Gpu::Get().RunDevice(Gpu::current_device());
  return AfterRunning();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  LLM_ENTER_CALL();
  *stream = Gpu::Get().AddStream();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  LLM_ENTER_CALL();
  Queue* queue = Gpu::Get().Find(stream);
  if (queue == nullptr) return Gpu::Get().Remember(cudaErrorInvalidResourceHandle);
  queue->capture = nullptr;
  Gpu::Get().RunUntil(queue, queue->submitted);
  return Gpu::Get().RemoveStream(stream) ? cudaSuccess
                                         : Gpu::Get().Remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  LLM_ENTER_CALL();
  Queue* queue = Gpu::Get().Find(stream);
  if (queue == nullptr) return Gpu::Get().Remember(cudaErrorInvalidResourceHandle);
  if (queue->capture != nullptr) {
    return Gpu::Get().Invalidate(queue, cudaErrorStreamCaptureUnsupported);
  }
  Gpu::Get().RunUntil(queue, queue->submitted);
  return AfterRunning();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  LLM_ENTER_CALL();
  Queue* queue = Gpu::Get().Find(stream);
  if (queue == nullptr || event == nullptr) {
    return Gpu::Get().Remember(cudaErrorInvalidResourceHandle);
  }
  if (event->captured) {
    // Behind its own stream's work it says nothing new; in another stream it would begin a fork.
    const bool same = queue->capture != nullptr && event->capture.lock() == queue->capture;
    return same ? cudaSuccess : Gpu::Get().Invalidate(queue, cudaErrorStreamCaptureUnsupported);
  }
  if (queue->capture != nullptr) {
    return Gpu::Get().Invalidate(queue, cudaErrorStreamCaptureIsolation);
  }
  // The event as it is recorded now: recording it again later changes nothing.
  return Gpu::Get().Remember(
      Gpu::Get().Submit(queue, [recorded = *event] { RunUntilEvent(recorded); }));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  LLM_ENTER_CALL();
  *event = new CUevent_st;
  (*event)->device = Gpu::current_device();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  LLM_ENTER_CALL();
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  LLM_ENTER_CALL();
  Queue* queue = Gpu::Get().Find(stream);
  if (queue == nullptr || event == nullptr) {
    return Gpu::Get().Remember(cudaErrorInvalidResourceHandle);
  }
  if (queue->device != event->device) return Gpu::Get().Remember(cudaErrorInvalidResourceHandle);
  if (queue->capture != nullptr && queue->capture->invalidated) {
    return Gpu::Get().Remember(cudaErrorStreamCaptureInvalidated);
  }
  *event = {event->device, queue->id, queue->submitted, queue->capture, queue->capture != nullptr};
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  LLM_ENTER_CALL();
  if (event->captured) return RefuseCaptured(*event);
  const Queue* queue = Gpu::Get().FindById(event->stream_id);
  return queue == nullptr || queue->done >= event->ticket ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  LLM_ENTER_CALL();
  if (event->captured) return RefuseCaptured(*event);
  RunUntilEvent(*event);
  return AfterRunning();
}
