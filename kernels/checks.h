// Argument checks shared by all backends: one function per op, called before anything is read or
// written.
//
// They find what a wrong caller or a hostile model file can cause (shapes, null pointers, ids and
// blocks out of range); the length of plain buffers cannot be seen from a pointer and is the
// caller's word.
#pragma once

#include "absl/status/status.h"
#include "kernels/kernel_table.h"

namespace llm {

inline constexpr int kMaxHeadDim = 576;   // DeepSeek's latent keys; bounds the stack of kernels
inline constexpr int kMaxExperts = 1024;  // likewise

// At least one form, and quants only complete and in whole groups. `op` starts the message.
absl::Status CheckActivations(const char* op, const Activations& activations);

absl::Status CheckPackRows(const PackRowsParams& params);
absl::Status CheckLinear(const LinearParams& params);
absl::Status CheckEmbed(const EmbedParams& params);
absl::Status CheckRmsNorm(const RmsNormParams& params);
absl::Status CheckGate(const GateParams& params);
absl::Status CheckRopeTable(const RopeTableParams& params);
absl::Status CheckRopeKvWrite(const RopeKvWriteParams& params);
absl::Status CheckAttention(const AttentionParams& params);
absl::Status CheckRowStats(const RowStatsParams& params);
absl::Status CheckSample(const SampleParams& params);
absl::Status CheckRouterRule(const RouterRule& rule);
absl::Status CheckMoeRoute(const MoeRouteParams& params);
absl::Status CheckMoeGather(const MoeGatherParams& params);
absl::Status CheckMoeCombine(const MoeCombineParams& params);
absl::Status CheckExpertLinear(const ExpertLinearParams& params);
absl::Status CheckCopyBlocks(const CopyBlocksParams& params);
absl::Status CheckReorder(const ReorderParams& params);
// The same, but for what the index arrays hold: a backend whose memory the host cannot read.
absl::Status CheckMoeGatherShapes(const MoeGatherParams& params);
absl::Status CheckMoeCombineShapes(const MoeCombineParams& params);
absl::Status CheckExpertLinearShapes(const ExpertLinearParams& params);
absl::Status CheckReorderShapes(const ReorderParams& params);
absl::Status CheckQuantize(const QuantizeParams& params);
absl::Status CheckSoftCap(const SoftCapParams& params);

// True when `linear` multiplies int8 activations with this format if it is given them.
bool ReadsQuants(WeightFormat format);

}  // namespace llm
