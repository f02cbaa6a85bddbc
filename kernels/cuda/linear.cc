// Launchers of what reads weights.
#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/element_type.h"
#include "src/base/status_macros.h"

namespace llm::cuda {
namespace {

constexpr int64_t kChunkColumns = 8;  // 16 bytes of bf16: what the tensor cores' kernel copies

absl::StatusOr<DType> TypeOf(const char* op, WeightFormat format) {
  const std::optional<DType> type = ElementType(format);
  if (type) return *type;
  return absl::UnimplementedError(
      absl::StrCat(op, ": CUDA has no kernel for weights of ", GetWeightFormat(format).name));
}

}  // namespace

absl::Status Linear(const LinearParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckLinear(params));
  const Activations& a = params.activations;
  for (const LinearOutput& output : params.outputs) {
    LLM_ASSIGN_OR_RETURN(const DType type, TypeOf("linear", output.weight.format));
    if (a.rows == 0 || output.weight.rows == 0) continue;
    const bool round = params.round_to_bf16 && type == DType::kBF16;
    const LinearArgs args = {
        a.values,           a.rows,      a.cols,     output.weight.data, type, round,
        output.weight.rows, output.bias, output.out, output.out_stride};
    const bool tensor_cores = round && a.cols % kChunkColumns == 0;
    LLM_RETURN_IF_CUDA_ERROR("linear", tensor_cores ? LaunchLinearBF16(args, stream.stream)
                                                    : LaunchLinearF32(args, stream.stream));
  }
  return absl::OkStatus();
}

absl::Status Embed(const EmbedParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckEmbed(params));
  LLM_ASSIGN_OR_RETURN(const DType type, TypeOf("embed", params.table.format));
  if (params.token_ids.empty()) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const int32_t* ids, stream.uploads->Upload(stream.stream, params.token_ids));
  const EmbedArgs args = {
      params.table.data, type,         ids,       static_cast<int64_t>(params.token_ids.size()),
      params.table.cols, params.scale, params.out};
  return CudaStatus("embed", LaunchEmbed(args, stream.stream));
}

}  // namespace llm::cuda
