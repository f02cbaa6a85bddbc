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
  std::unique_ptr<StepUploads> uploads;

  static absl::StatusOr<OwnedUploads> Create(size_t bytes) {
    OwnedUploads owned;
    LLM_ASSIGN_OR_RETURN(owned.device, AllocateDevice(bytes, "uploads"));
    LLM_ASSIGN_OR_RETURN(owned.pinned, AllocatePinned(bytes, "uploads"));
    LLM_ASSIGN_OR_RETURN(owned.uploads,
                         StepUploads::Create({static_cast<std::byte*>(owned.device.get()),
                                              static_cast<std::byte*>(owned.pinned.get()), bytes}));
    return owned;
  }
};

}  // namespace llm
