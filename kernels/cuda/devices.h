// The GPUs of this machine.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"

namespace llm {

struct CudaDevice {
  int index = 0;
  int major = 0;  // compute capability
  int minor = 0;
  int num_multiprocessors = 0;
  size_t shared_bytes = 0;  // that a block may ask for
};

// Those that the kernels are compiled for (compute capability 8.0 and later), in the driver's
// order. UNAVAILABLE, saying why, when there is no driver, an old one, or no such GPU. The driver
// is opened by the first call: a program that never calls this needs none.
absl::StatusOr<std::vector<CudaDevice>> CudaDevices();

}  // namespace llm
