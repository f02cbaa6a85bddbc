// Device, pinned and staged memory have the same offsets.
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
  for (EventOwner& copied : uploads->copied_) {
    LLM_ASSIGN_OR_RETURN(copied, CreateEvent());
  }
  uploads->copies_.reserve(kFewCopies);
  if (memory.staged == nullptr) return uploads;
  LLM_ASSIGN_OR_RETURN(uploads->staged_, CreateEvent());
  LLM_ASSIGN_OR_RETURN(uploads->copy_stream_, CreateStream());
  return uploads;
}

StepUploads::~StepUploads() {
  if (copy_stream_.get() != nullptr) {
    (void)CudaStatus("end", cudaStreamSynchronize(copy_stream_.get()));
  }
}

absl::Status StepUploads::Begin(bool ahead) {
  ahead_ = ahead && memory_.staged != nullptr;
  stage_ = (stage_ + 1) % UploadMemory::kStages;
  copies_.clear();
  recording_.reset();
  used_bytes_ = 0;
  return CudaStatus("begin of a step", cudaEventSynchronize(copied_[stage_].get()));
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
    if (bytes > 0) std::memcpy(pinned() + begin, host, bytes);
    LLM_RETURN_IF_ERROR(CopyRange(begin, begin + bytes, stream.stream));
  }
  copies_.push_back({host, bytes, begin});
  return memory_.device + begin;
}

absl::Status StepUploads::CopyRange(size_t begin, size_t end, cudaStream_t stream) {
  const std::byte* from = pinned() + begin;
  if (ahead_) {
    LLM_ASSIGN_OR_RETURN(from, Stage(begin, end, stream));
  }
  LLM_RETURN_IF_CUDA_ERROR(
      "arrays of a step",
      cudaMemcpyAsync(memory_.device + begin, from, end - begin,
                      ahead_ ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice, stream));
  return CudaStatus("arrays of a step", cudaEventRecord(copied_[stage_].get(), stream));
}

// Kernels that are still to run read `device`: until then the copies wait beside it.
absl::StatusOr<const std::byte*> StepUploads::Stage(size_t begin, size_t end, cudaStream_t stream) {
  std::byte* staged = memory_.staged + stage_ * memory_.bytes + begin;
  LLM_RETURN_IF_CUDA_ERROR("arrays of the next step",
                           cudaMemcpyAsync(staged, pinned() + begin, end - begin,
                                           cudaMemcpyHostToDevice, copy_stream_.get()));
  LLM_RETURN_IF_CUDA_ERROR("arrays of the next step",
                           cudaEventRecord(staged_.get(), copy_stream_.get()));
  LLM_RETURN_IF_CUDA_ERROR("arrays of the next step",
                           cudaStreamWaitEvent(stream, staged_.get(), 0));
  return staged;
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
    if (copy.bytes > 0) std::memcpy(pinned() + copy.begin, copy.host, copy.bytes);
  }
  if (absl::Status status = CopyRange(recording.begin, recording.end, stream); !status.ok()) {
    used_bytes_ = recording.begin;  // what may be on its way is replaced behind it
    return status;
  }
  copies_.insert(copies_.end(), recording.copies.begin(), recording.copies.end());
  return absl::OkStatus();
}

}  // namespace llm
