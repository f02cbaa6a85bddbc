// The CUDA backend's launchers: check arguments, copy the small arrays, start the kernels.
//
// Params are those of the other backends with these terms: plain pointers are device memory; spans,
// and attention's block_table, are host memory that stays as it is until the step's work is done;
// but what moe_route writes stays on the device: moe_gather's row_tokens, expert_linear's
// expert_begin and reorder's order_begin are device memory, and moe_route's word (as moe_combine's
// rows) that they are right. With `dense`, round_to_bf16 lets `linear` round activations to
// whatever the library multiplies the weights with. Weights are the file's blocks, 16-byte aligned.
// Results are there when the stream has come so far.
#pragma once

#include "kernels/cuda/launch_stream.h"
#include "kernels/cuda/step_uploads.h"
#include "kernels/kernel_table.h"

namespace llm {

class DenseLinear;

struct CudaStream {
  LaunchStream stream = nullptr;
  StepUploads* uploads = nullptr;
  DenseLinear* dense = nullptr;  // null: sums do not depend on the batch
  std::byte* rounded = nullptr;  // as UploadMemory's
  size_t rounded_bytes = 0;
};

namespace cuda {

absl::Status Linear(const LinearParams& params, const CudaStream& stream);
absl::Status Embed(const EmbedParams& params, const CudaStream& stream);
absl::Status RmsNorm(const RmsNormParams& params, const CudaStream& stream);
absl::Status Gate(const GateParams& params, const CudaStream& stream);
absl::Status RopeTable(const RopeTableParams& params, const CudaStream& stream);
absl::Status RopeKvWrite(const RopeKvWriteParams& params, const CudaStream& stream);
absl::Status Attention(const AttentionParams& params, const CudaStream& stream);
size_t AttentionWorkspaceBytes(const AttentionShape& shape);
absl::Status RowStats(const RowStatsParams& params, const CudaStream& stream);
absl::Status Sample(const SampleParams& params, const CudaStream& stream);
absl::Status SoftCap(const SoftCapParams& params, const CudaStream& stream);
absl::Status Quantize(const QuantizeParams& params, const CudaStream& stream);
absl::Status CopyBlocks(const CopyBlocksParams& params, const CudaStream& stream);
absl::Status Reorder(const ReorderParams& params, const CudaStream& stream);
absl::Status MoeRoute(const MoeRouteParams& params, const CudaStream& stream);
absl::Status MoeGather(const MoeGatherParams& params, const CudaStream& stream);
absl::Status MoeCombine(const MoeCombineParams& params, const CudaStream& stream);
absl::Status ExpertLinear(const ExpertLinearParams& params, const CudaStream& stream);

}  // namespace cuda
}  // namespace llm
