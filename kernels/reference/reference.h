// The definition of each op: scalar, double sums, no tricks. Other backends are tested against it.
#pragma once

#include "kernels/kernel_table.h"

namespace llm {

const KernelTable& ReferenceKernels();

// Its members, one per file.
absl::StatusOr<size_t> ReferencePackedBytes(WeightFormat format, int64_t rows, int64_t cols);
absl::Status ReferencePackRows(const PackRowsParams& params);
absl::Status ReferenceLinear(const LinearParams& params, const Stream& stream);
absl::Status ReferenceEmbed(const EmbedParams& params, const Stream& stream);
absl::Status ReferenceRmsNorm(const RmsNormParams& params, const Stream& stream);
absl::Status ReferenceGate(const GateParams& params, const Stream& stream);
absl::Status ReferenceRopeTable(const RopeTableParams& params, const Stream& stream);
absl::Status ReferenceRopeKvWrite(const RopeKvWriteParams& params, const Stream& stream);
absl::Status ReferenceAttention(const AttentionParams& params, const Stream& stream);
size_t ReferenceAttentionWorkspaceBytes(const AttentionShape& shape);
absl::Status ReferenceRowStats(const RowStatsParams& params, const Stream& stream);

}  // namespace llm
