// Device and pinned memory have the same offsets.
#include "kernels/cuda/step_uploads.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {

absl::StatusOr<std::unique_ptr<StepUploads>> StepUploads::Create(size_t capacity_bytes) {
  std::unique_ptr<StepUploads> uploads(new StepUploads(capacity_bytes));
  LLM_ASSIGN_OR_RETURN(uploads->device_, AllocateDevice(capacity_bytes, "arrays of a step"));
  LLM_ASSIGN_OR_RETURN(uploads->pinned_, AllocatePinned(capacity_bytes, "arrays of a step"));
  LLM_ASSIGN_OR_RETURN(uploads->copied_, CreateEvent());
  return uploads;
}

absl::Status StepUploads::Begin() {
  LLM_RETURN_IF_CUDA_ERROR("begin of a step", cudaEventSynchronize(copied_.get()));
  copies_.clear();
  used_bytes_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<const std::byte*> StepUploads::Upload(cudaStream_t stream, const void* host,
                                                     size_t bytes) {
  const auto [copy, is_new] = copies_.try_emplace({host, bytes}, nullptr);
  if (!is_new) return copy->second;
  const size_t begin = used_bytes_;
  if (bytes > capacity_bytes_ - begin) {
    copies_.erase(copy);
    return absl::ResourceExhaustedError(
        absl::StrCat("arrays of a step: ", bytes, " bytes after ", begin, " of ", capacity_bytes_));
  }
  std::byte* device = static_cast<std::byte*>(device_.get()) + begin;
  std::byte* pinned = static_cast<std::byte*>(pinned_.get()) + begin;
  if (bytes > 0) std::memcpy(pinned, host, bytes);
  cudaError_t error = cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream);
  if (error == cudaSuccess) error = cudaEventRecord(copied_.get(), stream);
  if (error != cudaSuccess) {
    copies_.erase(copy);
    return CudaStatus("arrays of a step", error);
  }
  used_bytes_ = std::min(capacity_bytes_, begin + RoundUp<size_t>(bytes, 64));
  copy->second = device;
  return device;
}

}  // namespace llm
