// The CPU backends' launchers: check arguments, split the work into tasks, run the given
// instruction set's loops.
#pragma once

#include <vector>

#include "kernels/cpu/isa_kernels.h"
#include "kernels/kernel_table.h"

namespace llm {

// The backends that this machine can run, fastest first: "avx512", "avx2", "generic".
std::vector<const KernelTable*> CpuKernelTables();

namespace cpu {

absl::Status RmsNorm(const IsaKernels& isa, const RmsNormParams& params, const Stream& stream);
absl::Status Gate(const IsaKernels& isa, const GateParams& params, const Stream& stream);
absl::Status RowStats(const IsaKernels& isa, const RowStatsParams& params, const Stream& stream);
absl::Status SoftCap(const IsaKernels& isa, const SoftCapParams& params, const Stream& stream);
absl::Status Quantize(const IsaKernels& isa, const QuantizeParams& params, const Stream& stream);
absl::Status MoeCombine(const IsaKernels& isa, const MoeCombineParams& params,
                        const Stream& stream);
absl::Status ExpertLinear(const IsaKernels& isa, const ExpertLinearParams& params,
                          const Stream& stream);
absl::Status RopeKvWrite(const IsaKernels& isa, const RopeKvWriteParams& params,
                         const Stream& stream);
absl::Status Attention(const IsaKernels& isa, const AttentionParams& params, const Stream& stream);
size_t AttentionWorkspaceBytes(const AttentionShape& shape);
absl::StatusOr<size_t> PackedBytes(WeightFormat format, int64_t rows, int64_t cols);
absl::Status PackRows(const PackRowsParams& params);
absl::Status Embed(const EmbedParams& params, const Stream& stream);
absl::Status Linear(const IsaKernels& isa, const LinearParams& params, const Stream& stream);

}  // namespace cpu
}  // namespace llm
