// The runtime remembers the last error for whoever asks next: it is taken away here.
#include "kernels/cuda/cuda_status.h"

#include "absl/strings/str_cat.h"

namespace llm {

absl::Status CudaStatus(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();
  const std::string message =
      absl::StrCat(what, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(message);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace llm
