// Launchers of what reads weights.
#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_formats.h"
#include "kernels/cuda/device_ops.h"
#include "src/base/status_macros.h"

namespace llm::cuda {
namespace {

constexpr int64_t kChunkColumns = 8;  // 16 bytes of bf16: what the tensor cores' kernel copies

absl::Status NoKernel(const char* op, WeightFormat format) {
  return absl::UnimplementedError(
      absl::StrCat(op, ": CUDA has no kernel for weights of ", GetWeightFormat(format).name));
}

absl::Status LinearOfElements(const LinearParams& params, const LinearOutput& output, DType type,
                              cudaStream_t stream) {
  const Activations& a = params.activations;
  LinearArgs args = {};
  args.activations = a.values;
  args.rows = a.rows;
  args.cols = a.cols;
  args.weight = output.weight.data;
  args.dtype = type;
  args.round_to_bf16 = params.round_to_bf16 && type == DType::kBF16;
  args.outputs = output.weight.rows;
  args.bias = output.bias;
  args.out = output.out;
  args.out_stride = output.out_stride;
  const bool tensor_cores = args.round_to_bf16 && a.cols % kChunkColumns == 0;
  return CudaStatus("linear",
                    tensor_cores ? LaunchLinearBF16(args, stream) : LaunchLinearF32(args, stream));
}

absl::Status LinearOfBlocks(const LinearParams& params, const LinearOutput& output,
                            cudaStream_t stream) {
  const std::optional<BlockFormat> format = BlockFormatOf(output.weight.format);
  if (!format) return NoKernel("linear", output.weight.format);
  const LinearBlocksArgs args = {params.activations, output.weight.data, output.weight.rows,
                                 output.bias,        output.out,         output.out_stride};
  return CudaStatus("linear", LaunchLinearBlocks(*format, args, stream));
}

}  // namespace

absl::Status Linear(const LinearParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckLinear(params));
  for (const LinearOutput& output : params.outputs) {
    if (params.activations.rows == 0 || output.weight.rows == 0) continue;
    const std::optional<DType> type = ElementType(output.weight.format);
    LLM_RETURN_IF_ERROR(type ? LinearOfElements(params, output, *type, stream.stream)
                             : LinearOfBlocks(params, output, stream.stream));
  }
  return absl::OkStatus();
}

absl::Status Embed(const EmbedParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckEmbed(params));
  if (params.token_ids.empty()) return absl::OkStatus();
  EmbedArgs args = {};
  LLM_ASSIGN_OR_RETURN(args.token_ids, stream.uploads->Upload(stream.stream, params.token_ids));
  args.table = params.table.data;
  args.num_tokens = static_cast<int64_t>(params.token_ids.size());
  args.cols = params.table.cols;
  args.scale = params.scale;
  args.out = params.out;
  if (const std::optional<DType> type = ElementType(params.table.format)) {
    args.dtype = *type;
    return CudaStatus("embed", LaunchEmbed(args, stream.stream));
  }
  const std::optional<BlockFormat> format = BlockFormatOf(params.table.format);
  if (!format) return NoKernel("embed", params.table.format);
  return CudaStatus("embed", LaunchEmbedBlocks(*format, args, stream.stream));
}

}  // namespace llm::cuda
