// Weights on their way to a device: pinned memory in two halves, of which one is filled while the
// other is being copied.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/tensor/buffer.h"
#include "src/tensor/device.h"

namespace llm {

class WeightUpload {
 public:
  // Pieces that are filled at once, for some threads: two each, so that none waits for another.
  static size_t NumSlots(int num_threads) { return 2 * static_cast<size_t>(num_threads); }
  // What Create allocates.
  static size_t PinnedBytes(size_t slot_bytes, int num_threads) {
    return 2 * NumSlots(num_threads) * slot_bytes;
  }

  // `slot_bytes` is a multiple of 64. Device and allocator outlive the upload.
  static absl::StatusOr<std::unique_ptr<WeightUpload>> Create(Device* device, Allocator* allocator,
                                                              size_t slot_bytes, int num_threads);

  // The other half is filled from now on: waits until what it held before is on the device.
  absl::Status BeginBatch();
  // Written by any thread until it is sent.
  std::byte* slot(size_t index) const { return half_begin_ + index * slot_bytes_; }
  // Copies the first `bytes` of a slot to the device's memory, behind the caller's back.
  absl::Status Send(size_t index, std::byte* to, size_t bytes);
  // Waits for all copies.
  absl::Status Finish();

 private:
  explicit WeightUpload(size_t slot_bytes) : slot_bytes_(slot_bytes) {}

  const size_t slot_bytes_;
  Buffer pinned_;
  std::unique_ptr<DeviceStream> streams_[2];  // one a half; they go first
  int half_ = 0;
  std::byte* half_begin_ = nullptr;
};

}  // namespace llm
