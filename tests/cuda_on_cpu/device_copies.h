// Device copies of an op's operands, for as long as the op runs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>

#include "absl/status/status.h"
#include "kernels/activations.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_buffer.h"
#include "tests/cuda_on_cpu/owned_uploads.h"

namespace llm {

class DeviceCopies {
 public:
  DeviceCopies();

  // Of `count` elements at `host`; null for null. Failures show in status().
  template <typename T>
  const T* In(const T* host, size_t count) {
    return static_cast<const T*>(Copy(host, count * sizeof(T), false));
  }
  // The same, copied back by Finish: also what the op leaves alone.
  template <typename T>
  T* InOut(T* host, size_t count) {
    return static_cast<T*>(Copy(host, count * sizeof(T), true));
  }
  Activations InOut(const Activations& a);

  const absl::Status& status() const { return failure_; }
  const CudaStream& stream() const { return stream_; }

  // `op` is what the launcher said. When all is well, waits for the device and copies back.
  absl::Status Finish(const absl::Status& op);

 private:
  struct Operand {
    DeviceMemoryOwner memory;
    size_t bytes = 0;
    bool is_result = false;
  };

  void* Copy(const void* host, size_t bytes, bool is_result);

  absl::Status failure_;
  StreamOwner owned_stream_;
  OwnedUploads uploads_;
  CudaStream stream_;
  std::map<const void*, Operand> operands_;  // by host address: operands may be the same memory
};

}  // namespace llm
