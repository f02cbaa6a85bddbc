// The small arrays of a step (ids, slots, block tables), copied to the device once; those of a step
// that begins ahead, while the device works on the one before.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/launch_stream.h"
#include "src/tensor/device.h"

namespace llm {

// Used by one thread, on one stream.
class StepUploads {
 public:
  // `memory` bounds what one step may copy.
  static absl::StatusOr<std::unique_ptr<StepUploads>> Create(const UploadMemory& memory);
  ~StepUploads();

  // Begins a step: what was copied before is void. Waits for the copies of the step before the
  // last, which read the same pinned memory. `ahead`: see DeviceStream.
  absl::Status Begin(bool ahead);

  // Arrays that a graph's work reads: where they lie in host memory, and where their copies do.
  struct Copy {
    const void* host = nullptr;
    size_t bytes = 0;
    size_t begin = 0;  // in the upload memory
  };
  struct Recording {
    std::vector<Copy> copies;
    size_t begin = 0, end = 0;  // of all copies
  };
  // In between, Upload gives arrays their places and copies nothing.
  void BeginRecording();
  Recording EndRecording();
  // Copies the arrays of a recording as they are now, all at once. FAILED_PRECONDITION where the
  // step has copied others to their places.
  absl::Status Replay(const Recording& recording, cudaStream_t stream);

  // The copy on the device, which work put on the stream from now on finds filled. Within a step
  // the same range of host memory gives the same copy and must not have changed. RESOURCE_EXHAUSTED
  // when the step copies more than the memory holds.
  absl::StatusOr<const std::byte*> Upload(LaunchStream stream, const void* host, size_t bytes);
  template <typename T>
  absl::StatusOr<const T*> Upload(LaunchStream stream, absl::Span<const T> values) {
    absl::StatusOr<const std::byte*> copy =
        Upload(stream, values.data(), values.size() * sizeof(T));
    if (!copy.ok()) return copy.status();
    return reinterpret_cast<const T*>(*copy);
  }

 private:
  explicit StepUploads(const UploadMemory& memory) : memory_(memory) {}

  std::byte* pinned() const { return memory_.pinned + stage_ * memory_.bytes; }
  absl::Status CopyRange(size_t begin, size_t end, cudaStream_t stream);
  absl::StatusOr<const std::byte*> Stage(size_t begin, size_t end, cudaStream_t stream);

  const UploadMemory memory_;
  StreamOwner copy_stream_;                   // to staged memory
  EventOwner staged_;                         // recorded there, behind the last copy
  EventOwner copied_[UploadMemory::kStages];  // recorded behind the last copy of a step
  size_t stage_ = 0;                          // that this step uses
  bool ahead_ = false;
  size_t used_bytes_ = 0;
  std::vector<Copy> copies_;  // of this step: some ten, looked up by each op of each layer
  std::optional<Recording> recording_;
};

}  // namespace llm
