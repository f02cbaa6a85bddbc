// Device and pinned memory have the same offsets.
#include "kernels/cuda/step_uploads.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr size_t kFewCopies = 64;  // more only where sequences have a table of their own (longrope)

}  // namespace

absl::StatusOr<std::unique_ptr<StepUploads>> StepUploads::Create(const UploadMemory& memory) {
  std::unique_ptr<StepUploads> uploads(new StepUploads(memory));
  LLM_ASSIGN_OR_RETURN(uploads->copied_, CreateEvent());
  uploads->copies_.reserve(kFewCopies);
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
  for (const Copy& copy : copies_) {
    if (copy.host == host && copy.bytes == bytes) return copy.device;
  }
  const size_t begin = used_bytes_;
  if (bytes > memory_.bytes - begin) {
    return absl::ResourceExhaustedError(
        absl::StrCat("arrays of a step: ", bytes, " bytes after ", begin, " of ", memory_.bytes));
  }
  std::byte* device = memory_.device + begin;
  std::byte* pinned = memory_.pinned + begin;
  if (bytes > 0) std::memcpy(pinned, host, bytes);
  // From here on the pinned bytes count as read, whatever fails.
  used_bytes_ = std::min(memory_.bytes, begin + RoundUp<size_t>(bytes, 64));
  LLM_RETURN_IF_CUDA_ERROR("arrays of a step",
                           cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
  LLM_RETURN_IF_CUDA_ERROR("arrays of a step", cudaEventRecord(copied_.get(), stream));
  copies_.push_back({host, bytes, device});
  return device;
}

}  // namespace llm
