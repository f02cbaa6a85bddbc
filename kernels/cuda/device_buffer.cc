// Each function is one call of the runtime.
#include "kernels/cuda/device_buffer.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"

namespace llm {
namespace {

absl::Status AllocationStatus(const char* what, size_t bytes, const char* kind, cudaError_t error) {
  const std::string text = absl::StrCat(what, ": ", bytes, " bytes of ", kind, " memory");
  return CudaStatus(text.c_str(), error);
}

absl::StatusOr<EventOwner> CreateEventWith(unsigned flags) {
  cudaEvent_t event = nullptr;
  LLM_RETURN_IF_CUDA_ERROR("event", cudaEventCreateWithFlags(&event, flags));
  return EventOwner(event);
}

}  // namespace

absl::StatusOr<DeviceMemoryOwner> AllocateDevice(size_t bytes, const char* what) {
  if (bytes == 0) return DeviceMemoryOwner();
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error != cudaSuccess) return AllocationStatus(what, bytes, "device", error);
  return DeviceMemoryOwner(memory);
}

absl::StatusOr<PinnedMemoryOwner> AllocatePinned(size_t bytes, const char* what) {
  if (bytes == 0) return PinnedMemoryOwner();
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (error != cudaSuccess) return AllocationStatus(what, bytes, "pinned", error);
  return PinnedMemoryOwner(memory);
}

absl::StatusOr<StreamOwner> CreateStream() {
  cudaStream_t stream = nullptr;
  LLM_RETURN_IF_CUDA_ERROR("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return StreamOwner(stream);
}

absl::StatusOr<EventOwner> CreateEvent() { return CreateEventWith(cudaEventDisableTiming); }

absl::StatusOr<EventOwner> CreateTimedEvent() { return CreateEventWith(cudaEventDefault); }

}  // namespace llm
