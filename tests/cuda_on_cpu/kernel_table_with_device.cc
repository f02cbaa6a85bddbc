// Stands for kernels/kernel_table.cc in the program of a test of models and engines: the library's
// CUDA backend, which keeps everything in the emulated device's memory, is listed with the
// reference.
#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_table.h"
#include "kernels/kernel_table.h"
#include "kernels/reference/reference.h"

namespace llm {

std::string NumericsId(const KernelTable& kernels) {
  return absl::StrCat(kernels.name, ":", kernels.packed_layout);
}

std::vector<const KernelTable*> AvailableKernels() { return {&CudaKernels(), &ReferenceKernels()}; }

absl::StatusOr<const KernelTable*> FindKernels(absl::string_view name) {
  if (name.empty() || name == "reference") return &ReferenceKernels();
  return absl::InvalidArgumentError(absl::StrCat("kernels: no backend \"", name, "\""));
}

absl::StatusOr<const KernelTable*> FindCudaKernels() { return &CudaKernels(); }

}  // namespace llm
