// StepUploads with memory of its own, for tests without a runner's workspace.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/step_uploads.h"
#include "src/base/status_macros.h"

namespace llm {

struct OwnedUploads {
  DeviceMemoryOwner device;
  PinnedMemoryOwner pinned;
  DeviceMemoryOwner staged;
  std::unique_ptr<StepUploads> uploads;

  static absl::StatusOr<OwnedUploads> Create(size_t bytes) {
    OwnedUploads owned;
    constexpr size_t kStages = UploadMemory::kStages;
    LLM_ASSIGN_OR_RETURN(owned.device, AllocateDevice(bytes, "uploads"));
    LLM_ASSIGN_OR_RETURN(owned.pinned, AllocatePinned(kStages * bytes, "uploads"));
    LLM_ASSIGN_OR_RETURN(owned.staged, AllocateDevice(kStages * bytes, "uploads"));
    LLM_ASSIGN_OR_RETURN(owned.uploads,
                         StepUploads::Create({.device = static_cast<std::byte*>(owned.device.get()),
                                              .pinned = static_cast<std::byte*>(owned.pinned.get()),
                                              .staged = static_cast<std::byte*>(owned.staged.get()),
                                              .bytes = bytes}));
    return owned;
  }
};

}  // namespace llm
