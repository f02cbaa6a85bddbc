// Lists the reference backend.
#include "kernels/reference/reference.h"

namespace llm {

const KernelTable& ReferenceKernels() {
  static constexpr KernelTable kTable = {
      .name = "reference",
      .packed_layout = "blocks-1",
      .packed_bytes = ReferencePackedBytes,
      .pack_rows = ReferencePackRows,
      .linear = ReferenceLinear,
      .embed = ReferenceEmbed,
      .rms_norm = ReferenceRmsNorm,
      .gate = ReferenceGate,
      .rope_table = ReferenceRopeTable,
      .rope_kv_write = ReferenceRopeKvWrite,
      .attention = ReferenceAttention,
      .attention_workspace_bytes = ReferenceAttentionWorkspaceBytes,
      .row_stats = ReferenceRowStats,
      .sample = ReferenceSample,
      .soft_cap = ReferenceSoftCap,
      .quantize = ReferenceQuantize,
      .copy_blocks = ReferenceCopyBlocks,
      .reorder = ReferenceReorder,
      .moe_route = ReferenceMoeRoute,
      .moe_gather = ReferenceMoeGather,
      .moe_combine = ReferenceMoeCombine,
      .expert_linear = ReferenceExpertLinear,
  };
  return kTable;
}

}  // namespace llm
