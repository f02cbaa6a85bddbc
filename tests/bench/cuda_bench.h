// Timing on a GPU, and memory there, for the benchmarks of the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device_buffer.h"

namespace llm::bench {

struct Times {  // of one call, in microseconds
  double median = 0;
  double least = 0;
  double most = 0;
};

// Calls `work` with 0, 1, 2, ... for a while, in several rounds behind a warm-up. `work` puts one
// call on `stream`.
absl::StatusOr<Times> Measure(cudaStream_t stream, const std::function<absl::Status(int)>& work);

// Device memory with `bytes` of arbitrary, but finite numbers of any format: bytes of 0x11.
absl::StatusOr<DeviceMemoryOwner> Filled(size_t bytes, const char* what);

// Bytes read and written per second by a copy within the device that its caches do not hold.
absl::StatusOr<double> CopyRate(cudaStream_t stream);

}  // namespace llm::bench
