// Binds the launchers to each instruction set: a KernelTable holds plain function pointers, so the
// set is a template argument.
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/cpu_kernels.h"

namespace llm {
namespace {

template <const IsaKernels& (*kIsa)()>
absl::Status Linear(const LinearParams& params, const Stream& stream) {
  return cpu::Linear(kIsa(), params, stream);
}

template <const IsaKernels& (*kIsa)()>
const KernelTable& Table() {
  static const KernelTable table = {
      .name = kIsa().name,
      .packed_bytes = cpu::PackedBytes,
      .pack_rows = cpu::PackRows,
      .linear = Linear<kIsa>,
      .embed = cpu::Embed,
      .rms_norm = nullptr,
      .gate = nullptr,
      .rope_table = nullptr,
      .rope_kv_write = nullptr,
      .attention = nullptr,
      .attention_workspace_bytes = nullptr,
      .row_stats = nullptr,
  };
  return table;
}

}  // namespace

std::vector<const KernelTable*> CpuKernelTables() {
  std::vector<const KernelTable*> tables;
#if defined(__x86_64__)
  const CpuFeatures features = DetectCpuFeatures();
  if (features.avx512) tables.push_back(&Table<avx512::Kernels>());
  if (features.avx2) tables.push_back(&Table<avx2::Kernels>());
#endif
  tables.push_back(&Table<generic::Kernels>());
  return tables;
}

}  // namespace llm
