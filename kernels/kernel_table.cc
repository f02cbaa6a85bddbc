// The list of backends, explicit: linkers drop unreferenced objects of static libraries.
#include "kernels/kernel_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/reference/reference.h"
#ifdef INLAY_CUDA
#include "kernels/cuda/cuda_table.h"
#endif

namespace llm {

std::string NumericsId(const KernelTable& kernels) {
  return absl::StrCat(kernels.name, ":", kernels.packed_layout);
}

std::vector<const KernelTable*> AvailableKernels() {
  std::vector<const KernelTable*> tables = CpuKernelTables();
  tables.push_back(&ReferenceKernels());
  return tables;
}

absl::StatusOr<const KernelTable*> FindKernels(absl::string_view name) {
  const std::vector<const KernelTable*> tables = AvailableKernels();
  if (name.empty()) return tables.front();
  for (const KernelTable* table : tables) {
    if (name == table->name) return table;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "kernels: no backend \"", name, "\" on this machine; it has ",
      absl::StrJoin(tables, ", ",
                    [](std::string* out, const KernelTable* table) { *out += table->name; })));
}

absl::StatusOr<const KernelTable*> FindCudaKernels() {
#ifdef INLAY_CUDA
  return &CudaKernels();
#else
  return absl::UnavailableError("CUDA: this library was built without it (-DINLAY_CUDA=ON)");
#endif
}

}  // namespace llm
