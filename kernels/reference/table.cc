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
  };
  return kTable;
}

}  // namespace llm
