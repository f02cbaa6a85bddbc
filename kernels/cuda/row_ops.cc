// Launchers of what works row by row: norms, gates, copies, sampling's statistics.
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_ops.h"
#include "src/base/status_macros.h"

namespace llm::cuda {

absl::Status RmsNorm(const RmsNormParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckRmsNorm(params));
  if (params.output.rows == 0) return absl::OkStatus();
  const RmsNormArgs args = {params.input, params.residual, params.weight, params.eps,
                            params.output};
  return CudaStatus("rms_norm", LaunchRmsNorm(args, stream.stream));
}

absl::Status Gate(const GateParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckGate(params));
  if (params.output.rows == 0) return absl::OkStatus();
  const GateArgs args = {params.gate, params.up, params.input_stride, params.limit, params.output};
  // Numbered alike: CheckGate knows no others.
  const auto activation = static_cast<DeviceGate>(params.activation);
  return CudaStatus("gate", LaunchGate(activation, args, stream.stream));
}

absl::Status RowStats(const RowStatsParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckRowStats(params));
  if (params.rows == 0) return absl::OkStatus();
  const RowStatsArgs args = {params.logits, params.rows, params.cols,
                             params.argmax, params.max,  params.log_sum_exp};
  return CudaStatus("row_stats", LaunchRowStats(args, stream.stream));
}

absl::Status Sample(const SampleParams& params, const CudaStream& stream) {
  const SampleParams& p = params;
  LLM_RETURN_IF_ERROR(CheckSample(p));
  if (p.draws.empty()) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const RowDraw* draws, stream.uploads->Upload(stream.stream, p.draws));
  const LogitEdit* edits = nullptr;
  if (!p.edits.empty()) {
    LLM_ASSIGN_OR_RETURN(edits, stream.uploads->Upload(stream.stream, p.edits));
  }
  const SampleArgs args = {p.logits,
                           p.cols,
                           p.argmax,
                           p.max,
                           p.log_sum_exp,
                           draws,
                           static_cast<int64_t>(p.draws.size()),
                           edits,
                           p.originals,
                           p.drawn,
                           p.top,
                           p.max_top};
  return CudaStatus("sample", LaunchSample(args, stream.stream));
}

absl::Status SoftCap(const SoftCapParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckSoftCap(params));
  if (params.rows == 0) return absl::OkStatus();
  const SoftCapArgs args = {params.values, params.rows, params.cols, params.cap};
  return CudaStatus("soft_cap", LaunchSoftCap(args, stream.stream));
}

absl::Status Quantize(const QuantizeParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckQuantize(params));
  if (params.activations.rows == 0) return absl::OkStatus();
  const QuantizeArgs args = {params.activations.values, params.activations};
  return CudaStatus("quantize", LaunchQuantize(args, stream.stream));
}

absl::Status CopyBlocks(const CopyBlocksParams& params, const CudaStream& stream) {
  const CopyBlocksParams& p = params;
  LLM_RETURN_IF_ERROR(CheckCopyBlocks(p));
  if (p.outer == 0 || p.inner == 0 || p.cols == 0) return absl::OkStatus();
  const CopyBlocksArgs args = {p.from,     p.from_outer, p.from_inner, p.to,  p.to_outer,
                               p.to_inner, p.outer,      p.inner,      p.cols};
  return CudaStatus("copy_blocks", LaunchCopyBlocks(args, stream.stream));
}

}  // namespace llm::cuda
