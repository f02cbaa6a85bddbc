// Owners of a device's memory, of pinned host memory, of a stream, an event and a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace llm {

// A movable owner of a handle that kRelease gives back. Errors of giving back are lost: they were
// reported by the call that waited for the work. The host, which may ask the runtime for the last
// error of its thread, does not get ours.
template <typename Handle, cudaError_t (*kRelease)(Handle)>
class CudaOwner {
 public:
  CudaOwner() = default;
  explicit CudaOwner(Handle handle) : handle_(handle) {}
  ~CudaOwner() { Reset(); }
  CudaOwner(CudaOwner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  CudaOwner& operator=(CudaOwner&& other) noexcept {
    if (this != &other) {
      Reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Handle get() const { return handle_; }
  // The handle, which the caller gives back from now on.
  Handle Release() { return std::exchange(handle_, nullptr); }
  void Reset() {
    if (handle_ != nullptr && kRelease(handle_) != cudaSuccess) (void)cudaGetLastError();
    handle_ = nullptr;
  }

 private:
  Handle handle_ = nullptr;
};

using DeviceMemoryOwner = CudaOwner<void*, cudaFree>;
using PinnedMemoryOwner = CudaOwner<void*, cudaFreeHost>;
using StreamOwner = CudaOwner<cudaStream_t, cudaStreamDestroy>;
using EventOwner = CudaOwner<cudaEvent_t, cudaEventDestroy>;
using GraphOwner = CudaOwner<cudaGraph_t, cudaGraphDestroy>;
using GraphExecOwner = CudaOwner<cudaGraphExec_t, cudaGraphExecDestroy>;

// RESOURCE_EXHAUSTED, naming `what` and the size, when there is no room. bytes may be 0.
absl::StatusOr<DeviceMemoryOwner> AllocateDevice(size_t bytes, const char* what);
absl::StatusOr<PinnedMemoryOwner> AllocatePinned(size_t bytes, const char* what);
// One that does not wait for the default stream.
absl::StatusOr<StreamOwner> CreateStream();
absl::StatusOr<EventOwner> CreateEvent();
// One that the time from another is asked of.
absl::StatusOr<EventOwner> CreateTimedEvent();

}  // namespace llm
