// Asks the runtime, which opens the driver's library when it is first used.
#include "kernels/cuda/devices.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr int kOldestMajor = 8;

absl::Status Ask(cudaDeviceAttr attribute, int device, int* value) {
  LLM_RETURN_IF_CUDA_ERROR("CUDA device", cudaDeviceGetAttribute(value, attribute, device));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CudaDevice>> CudaDevices() {
  int count = 0;
  LLM_RETURN_IF_CUDA_ERROR("CUDA", cudaGetDeviceCount(&count));
  std::vector<CudaDevice> devices;
  for (int i = 0; i < count; ++i) {
    CudaDevice device = {.index = i};
    int shared_bytes = 0;
    LLM_RETURN_IF_ERROR(Ask(cudaDevAttrComputeCapabilityMajor, i, &device.major));
    LLM_RETURN_IF_ERROR(Ask(cudaDevAttrComputeCapabilityMinor, i, &device.minor));
    LLM_RETURN_IF_ERROR(Ask(cudaDevAttrMultiProcessorCount, i, &device.num_multiprocessors));
    LLM_RETURN_IF_ERROR(Ask(cudaDevAttrMaxSharedMemoryPerBlockOptin, i, &shared_bytes));
    device.shared_bytes = static_cast<size_t>(shared_bytes);
    if (device.major >= kOldestMajor) devices.push_back(device);
  }
  if (!devices.empty()) return devices;
  return absl::UnavailableError(
      absl::StrCat("CUDA: ", count, " devices, none of compute capability 8.0 or later"));
}

}  // namespace llm
