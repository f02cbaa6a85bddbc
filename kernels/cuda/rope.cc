// Launchers of rotary positions.
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_ops.h"
#include "src/base/status_macros.h"

namespace llm::cuda {

absl::Status RopeTable(const RopeTableParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckRopeTable(params));
  if (params.positions.empty() || params.inv_freq.empty()) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const int32_t* positions,
                       stream.uploads->Upload(stream.stream, params.positions));
  LLM_ASSIGN_OR_RETURN(const float* inv_freq,
                       stream.uploads->Upload(stream.stream, params.inv_freq));
  const RopeTableArgs args = {positions,
                              inv_freq,
                              static_cast<int64_t>(params.positions.size()),
                              static_cast<int>(params.inv_freq.size()),
                              params.magnitude,
                              params.cos_sin};
  return CudaStatus("rope_table", LaunchRopeTable(args, stream.stream));
}

absl::Status RopeKvWrite(const RopeKvWriteParams& params, const CudaStream& stream) {
  const RopeKvWriteParams& p = params;
  LLM_RETURN_IF_ERROR(CheckRopeKvWrite(p));
  if (p.slot_mapping.empty()) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const int32_t* slots, stream.uploads->Upload(stream.stream, p.slot_mapping));
  const RopeKvWriteArgs args = {p.q,           p.k,
                                p.v,           p.q_stride,
                                p.kv_stride,   p.num_heads,
                                p.q_norm,      p.k_norm,
                                p.norm_eps,    p.pairs == RopePairs::kAdjacent,
                                p.rope_dim,    p.cos_sin,
                                slots,         static_cast<int64_t>(p.slot_mapping.size()),
                                KvArgsOf(p.kv)};
  return CudaStatus("rope_kv_write", LaunchRopeKvWrite(args, stream.stream));
}

}  // namespace llm::cuda
