// The definition of each op: scalar, double sums, no tricks. Other backends are tested against it.
#pragma once

#include "kernels/kernel_table.h"

namespace llm {

const KernelTable& ReferenceKernels();

// Its members.
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
absl::Status ReferenceSample(const SampleParams& params, const Stream& stream);
absl::Status ReferenceSoftCap(const SoftCapParams& params, const Stream& stream);
absl::Status ReferenceQuantize(const QuantizeParams& params, const Stream& stream);
absl::Status ReferenceCopyBlocks(const CopyBlocksParams& params, const Stream& stream);
absl::Status ReferenceReorder(const ReorderParams& params, const Stream& stream);
absl::Status ReferenceMoeRoute(const MoeRouteParams& params, const Stream& stream);
absl::Status ReferenceMoeGather(const MoeGatherParams& params, const Stream& stream);
absl::Status ReferenceMoeCombine(const MoeCombineParams& params, const Stream& stream);
absl::Status ReferenceExpertLinear(const ExpertLinearParams& params, const Stream& stream);

}  // namespace llm
