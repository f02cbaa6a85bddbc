// A half's stream holds the copies out of it and nothing else, so that waiting for one is waiting
// for the other.
#include "src/model/weight_upload.h"

#include "src/base/status_macros.h"

namespace llm {

absl::StatusOr<std::unique_ptr<WeightUpload>> WeightUpload::Create(Device* device,
                                                                   Allocator* allocator,
                                                                   size_t slot_bytes,
                                                                   int num_threads) {
  std::unique_ptr<WeightUpload> upload(new WeightUpload(slot_bytes));
  LLM_ASSIGN_OR_RETURN(upload->pinned_, Buffer::AllocatePinned(device, allocator,
                                                               PinnedBytes(slot_bytes, num_threads),
                                                               "pinned memory of the loader"));
  for (std::unique_ptr<DeviceStream>& stream : upload->streams_) {
    LLM_ASSIGN_OR_RETURN(stream, device->CreateStream({}));
  }
  upload->half_begin_ = upload->pinned_.data();
  return upload;
}

absl::Status WeightUpload::BeginBatch() {
  half_ = 1 - half_;
  half_begin_ = pinned_.data() + static_cast<size_t>(half_) * (pinned_.size() / 2);
  return streams_[half_]->Wait();
}

absl::Status WeightUpload::Send(size_t index, std::byte* to, size_t bytes) {
  return streams_[half_]->CopyIn(to, slot(index), bytes);
}

absl::Status WeightUpload::Finish() {
  for (const std::unique_ptr<DeviceStream>& stream : streams_) LLM_RETURN_IF_ERROR(stream->Wait());
  return absl::OkStatus();
}

}  // namespace llm
