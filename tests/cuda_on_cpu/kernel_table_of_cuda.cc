// Stands for kernels/kernel_table.cc in the program of a test of ops: the CUDA backend over host
// memory, and the reference. The linker finds these definitions first and leaves the library's file
// out.
#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"
#include "kernels/reference/reference.h"
#include "tests/cuda_on_cpu/host_table.h"

namespace llm {

std::string NumericsId(const KernelTable& kernels) {
  return absl::StrCat(kernels.name, ":", kernels.packed_layout);
}

std::vector<const KernelTable*> AvailableKernels() {
  return {&CudaOnCpuKernels(), &ReferenceKernels()};
}

absl::StatusOr<const KernelTable*> FindKernels(absl::string_view name) {
  for (const KernelTable* table : AvailableKernels()) {
    if (name.empty() || name == table->name) return table;
  }
  return absl::InvalidArgumentError(absl::StrCat("kernels: no backend \"", name, "\""));
}

absl::StatusOr<const KernelTable*> FindCudaKernels() {
  return absl::UnavailableError("CUDA: ops are tested over host memory");
}

}  // namespace llm
