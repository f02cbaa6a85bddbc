// Binds the launchers to the stream of a step.
#include "kernels/cuda/cuda_table.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/dense_linear.h"
#include "kernels/cuda/device_formats.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

template <auto kOp, typename Params>
absl::Status On(const Params& params, const Stream& stream) {
  const auto& device = static_cast<const CudaDeviceStream&>(*stream.device);
  const ScopedCudaDevice scope(device.index());
  LLM_RETURN_IF_ERROR(scope.status());
  return kOp(params, device.launches());
}

absl::Status CheckFormat(WeightFormat format) {
  if (ElementType(format) || BlockFormatOf(format)) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("CUDA has no kernels for weights of ", GetWeightFormat(format).name));
}

}  // namespace

const KernelTable& CudaKernels() {
  static constexpr KernelTable kTable = {
      .name = "cuda",
      .packed_layout = "blocks-1",
      .packed_bytes = ReferencePackedBytes,
      .pack_rows = ReferencePackRows,
      .linear = On<cuda::Linear, LinearParams>,
      .embed = On<cuda::Embed, EmbedParams>,
      .rms_norm = On<cuda::RmsNorm, RmsNormParams>,
      .gate = On<cuda::Gate, GateParams>,
      .rope_table = On<cuda::RopeTable, RopeTableParams>,
      .rope_kv_write = On<cuda::RopeKvWrite, RopeKvWriteParams>,
      .attention = On<cuda::Attention, AttentionParams>,
      .attention_workspace_bytes = cuda::AttentionWorkspaceBytes,
      .row_stats = On<cuda::RowStats, RowStatsParams>,
      .sample = On<cuda::Sample, SampleParams>,
      .soft_cap = On<cuda::SoftCap, SoftCapParams>,
      .quantize = On<cuda::Quantize, QuantizeParams>,
      .copy_blocks = On<cuda::CopyBlocks, CopyBlocksParams>,
      .reorder = On<cuda::Reorder, ReorderParams>,
      .moe_route = On<cuda::MoeRoute, MoeRouteParams>,
      .moe_gather = On<cuda::MoeGather, MoeGatherParams>,
      .moe_combine = On<cuda::MoeCombine, MoeCombineParams>,
      .expert_linear = On<cuda::ExpertLinear, ExpertLinearParams>,
      .open_device = OpenCudaDevice,
      .check_format = CheckFormat,
      .dense_workspace_bytes = DenseLinear::WorkspaceBytes,
  };
  return kTable;
}

}  // namespace llm
