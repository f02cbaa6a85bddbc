// Binds the launchers to each instruction set: a KernelTable holds plain function pointers, so the
// set is a template argument.
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/weight_tiles.h"
#include "kernels/reference/reference.h"

namespace llm {
namespace {

// The launcher kOp with its instruction set bound.
template <const IsaKernels& (*kIsa)(), auto kOp, typename Params>
absl::Status Bind(const Params& params, const Stream& stream) {
  return kOp(kIsa(), params, stream);
}

template <const IsaKernels& (*kIsa)()>
const KernelTable& Table() {
  static const KernelTable table = {
      .name = kIsa().name,
      .packed_layout = kTileLayout,
      .packed_bytes = cpu::PackedBytes,
      .pack_rows = cpu::PackRows,
      .linear = Bind<kIsa, cpu::Linear, LinearParams>,
      .embed = cpu::Embed,
      .rms_norm = Bind<kIsa, cpu::RmsNorm, RmsNormParams>,
      .gate = Bind<kIsa, cpu::Gate, GateParams>,
      // A few thousand exact sines once per step: nothing to gain.
      .rope_table = ReferenceRopeTable,
      .rope_kv_write = Bind<kIsa, cpu::RopeKvWrite, RopeKvWriteParams>,
      .attention = Bind<kIsa, cpu::Attention, AttentionParams>,
      .attention_workspace_bytes = cpu::AttentionWorkspaceBytes,
      .row_stats = Bind<kIsa, cpu::RowStats, RowStatsParams>,
      // The engine draws from host memory by src/sampling.
      .sample = ReferenceSample,
      .soft_cap = Bind<kIsa, cpu::SoftCap, SoftCapParams>,
      .quantize = Bind<kIsa, cpu::Quantize, QuantizeParams>,
      // Plain copies.
      .copy_blocks = ReferenceCopyBlocks,
      .reorder = ReferenceReorder,
      .moe_route = ReferenceMoeRoute,
      .moe_gather = ReferenceMoeGather,
      .moe_combine = Bind<kIsa, cpu::MoeCombine, MoeCombineParams>,
      .expert_linear = Bind<kIsa, cpu::ExpertLinear, ExpertLinearParams>,
  };
  return table;
}

#if defined(__x86_64__)
// Under the same name: this instruction gives no other bits (linear.h).
const IsaKernels& Avx512WithBF16() {
  static const IsaKernels kernels = [] {
    IsaKernels result = avx512::Kernels();
    result.linear_bf16 = avx512bf16::RunLinearBF16;
    return result;
  }();
  return kernels;
}
#endif

}  // namespace

std::vector<const KernelTable*> CpuKernelTables() {
  std::vector<const KernelTable*> tables;
#if defined(__x86_64__)
  const CpuFeatures features = DetectCpuFeatures();
  if (features.avx512) {
    tables.push_back(features.avx512_bf16 ? &Table<Avx512WithBF16>() : &Table<avx512::Kernels>());
  }
  if (features.avx2) tables.push_back(&Table<avx2::Kernels>());
#endif
  tables.push_back(&Table<generic::Kernels>());
  return tables;
}

}  // namespace llm
