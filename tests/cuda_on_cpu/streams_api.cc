// Streams and events of the emulated runtime.
#include <cstdint>

#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"

using llm::cuda_on_cpu::Gpu;
using llm::cuda_on_cpu::Queue;

// A place in a stream's work: done when the stream has come so far. Never recorded means done.
struct CUevent_st {
  int device = 0;  // that it was created for
  bool is_timed = false;
  uint64_t stream_id = 0;
  uint64_t ticket = 0;
};

namespace {

cudaError_t AfterRunning() {
  Gpu& gpu = Gpu::Get();
  return gpu.fault().empty() ? cudaSuccess : gpu.Remember(cudaErrorIllegalAddress);
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
  if (queue->capture != nullptr) {
    return Gpu::Get().Invalidate(queue, cudaErrorStreamCaptureUnsupported);
  }
  // The event as it is recorded now: recording it again later changes nothing.
  return Gpu::Get().Remember(
      Gpu::Get().Submit(queue, [recorded = *event] { RunUntilEvent(recorded); }));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  LLM_ENTER_CALL();
  *event = new CUevent_st;
  (*event)->device = Gpu::current_device();
  (*event)->is_timed = (flags & cudaEventDisableTiming) == 0;
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
  if (queue->capture != nullptr) {
    return Gpu::Get().Invalidate(queue, cudaErrorStreamCaptureUnsupported);
  }
  event->stream_id = queue->id;
  event->ticket = queue->submitted;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  LLM_ENTER_CALL();
  const Queue* queue = Gpu::Get().FindById(event->stream_id);
  return queue == nullptr || queue->done >= event->ticket ? cudaSuccess : cudaErrorNotReady;
}

// The emulated device has no clock: whatever lies between two events took a millisecond, so that
// nothing made of it can be mistaken for a measurement.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  for (const cudaEvent_t event : {begin, end}) {
    if (!event->is_timed) return Gpu::Get().Remember(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = cudaEventQuery(event); error != cudaSuccess) return error;
  }
  *milliseconds = 1;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  LLM_ENTER_CALL();
  RunUntilEvent(*event);
  return AfterRunning();
}
