// Device and pinned memory have the same offsets.
#include "kernels/cuda/step_uploads.h"

#include <algorithm>
#include <cstring>
#include <utility>

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
  recording_.reset();
  used_bytes_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<const std::byte*> StepUploads::Upload(LaunchStream stream, const void* host,
                                                     size_t bytes) {
  for (const Copy& copy : copies_) {
    if (copy.host == host && copy.bytes == bytes) return memory_.device + copy.begin;
  }
  const size_t begin = used_bytes_;
  if (bytes > memory_.bytes - begin) {
    return absl::ResourceExhaustedError(
        absl::StrCat("arrays of a step: ", bytes, " bytes after ", begin, " of ", memory_.bytes));
  }
  // From here on the pinned bytes count as read, whatever fails.
  used_bytes_ = std::min(memory_.bytes, begin + RoundUp<size_t>(bytes, 64));
  if (!recording_) {
    if (bytes > 0) std::memcpy(memory_.pinned + begin, host, bytes);
    LLM_RETURN_IF_ERROR(CopyRange(begin, begin + bytes, stream.stream));
  }
  copies_.push_back({host, bytes, begin});
  return memory_.device + begin;
}

absl::Status StepUploads::CopyRange(size_t begin, size_t end, cudaStream_t stream) {
  LLM_RETURN_IF_CUDA_ERROR("arrays of a step",
                           cudaMemcpyAsync(memory_.device + begin, memory_.pinned + begin,
                                           end - begin, cudaMemcpyHostToDevice, stream));
  return CudaStatus("arrays of a step", cudaEventRecord(copied_.get(), stream));
}

void StepUploads::BeginRecording() {
  Recording recording;
  recording.copies.reserve(kFewCopies);
  recording.begin = used_bytes_;
  recording_ = std::move(recording);
  copies_.swap(recording_->copies);  // a graph does not lean on what this step alone copied
}

StepUploads::Recording StepUploads::EndRecording() {
  copies_.swap(recording_->copies);
  recording_->end = used_bytes_;
  used_bytes_ = recording_->begin;
  Recording recording = *std::move(recording_);
  recording_.reset();
  return recording;
}

absl::Status StepUploads::Replay(const Recording& recording, cudaStream_t stream) {
  if (used_bytes_ != recording.begin) {
    return absl::FailedPreconditionError(absl::StrCat(
        "arrays of a graph: their place at ", recording.begin, " is taken up to ", used_bytes_));
  }
  used_bytes_ = recording.end;
  for (const Copy& copy : recording.copies) {
    if (copy.bytes > 0) std::memcpy(memory_.pinned + copy.begin, copy.host, copy.bytes);
  }
  LLM_RETURN_IF_ERROR(CopyRange(recording.begin, recording.end, stream));
  copies_.insert(copies_.end(), recording.copies.begin(), recording.copies.end());
  return absl::OkStatus();
}

}  // namespace llm
