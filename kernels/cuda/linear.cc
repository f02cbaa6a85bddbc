// Launchers of what reads weights.
#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/dense_linear.h"
#include "kernels/cuda/device_formats.h"
#include "kernels/cuda/device_ops.h"
#include "src/base/status_macros.h"

namespace llm::cuda {
namespace {

constexpr int64_t kChunkColumns = 8;  // 16 bytes of bf16: what the tensor cores' kernel copies
constexpr int64_t kRunColumns = 32;   // of plain elements that stand for a block

absl::Status NoKernel(const char* op, WeightFormat format) {
  return absl::UnimplementedError(
      absl::StrCat(op, ": CUDA has no kernel for weights of ", GetWeightFormat(format).name));
}

// One weight for all rows, or one for each expert's.
struct Output {
  LinearOutput linear;  // of one expert
  ExpertRows experts;
};

LinearBlocksArgs BlocksArgs(const LinearParams& params, const Output& output) {
  const LinearOutput& linear = output.linear;
  return {params.activations, linear.weight.data, linear.weight.rows, linear.bias,
          linear.out,         linear.out_stride,  output.experts};
}

absl::Status LinearOfElements(const LinearParams& params, const Output& output, DType type,
                              LaunchStream stream) {
  const Activations& a = params.activations;
  const bool round_to_bf16 = params.round_to_bf16 && type == DType::kBF16;
  if (!round_to_bf16 && type != DType::kF32 && a.cols % kRunColumns == 0) {
    return CudaStatus("linear", LaunchLinearRuns(type, BlocksArgs(params, output), stream));
  }
  LinearArgs args = {};
  args.activations = a.values;
  args.rows = a.rows;
  args.cols = a.cols;
  args.weight = output.linear.weight.data;
  args.dtype = type;
  args.round_to_bf16 = round_to_bf16;
  args.outputs = output.linear.weight.rows;
  args.bias = output.linear.bias;
  args.out = output.linear.out;
  args.out_stride = output.linear.out_stride;
  args.experts = output.experts;
  const bool tensor_cores = round_to_bf16 && a.cols % kChunkColumns == 0;
  return CudaStatus("linear",
                    tensor_cores ? LaunchLinearBF16(args, stream) : LaunchLinearF32(args, stream));
}

absl::Status LinearOfBlocks(const LinearParams& params, const Output& output, LaunchStream stream) {
  const WeightFormat weight_format = output.linear.weight.format;
  const std::optional<BlockFormat> format = BlockFormatOf(weight_format);
  if (!format) return NoKernel("linear", weight_format);
  const LinearBlocksArgs args = BlocksArgs(params, output);
  const bool quants = args.activations.quants != nullptr && ReadsQuants(weight_format);
  return CudaStatus("linear", quants ? LaunchLinearInt(*format, args, stream)
                                     : LaunchLinearBlocks(*format, args, stream));
}

absl::Status RunOutput(const LinearParams& params, const Output& output, LaunchStream stream) {
  if (params.activations.rows == 0 || output.linear.weight.rows == 0) return absl::OkStatus();
  const std::optional<DType> type = ElementType(output.linear.weight.format);
  return type ? LinearOfElements(params, output, *type, stream)
              : LinearOfBlocks(params, output, stream);
}

}  // namespace

absl::Status Linear(const LinearParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckLinear(params));
  if (stream.dense != nullptr) stream.dense->Begin();
  for (const LinearOutput& output : params.outputs) {
    if (stream.dense != nullptr) {
      LLM_ASSIGN_OR_RETURN(const bool done, stream.dense->Run(params, output, stream.stream));
      if (done) continue;
    }
    LLM_RETURN_IF_ERROR(RunOutput(params, {output, {}}, stream.stream));
  }
  return absl::OkStatus();
}

absl::Status ExpertLinear(const ExpertLinearParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckExpertLinearShapes(params));
  const LinearParams linear = {
      .activations = params.activations, .outputs = {}, .round_to_bf16 = params.round_to_bf16};
  for (const ExpertOutput& output : params.outputs) {
    Output one;
    one.linear = {output.weight, output.bias, output.out, output.outputs};
    one.linear.weight.rows = output.outputs;
    one.experts.begin = params.expert_begin.empty() ? nullptr : params.expert_begin.data();
    one.experts.count = static_cast<int>(NumExperts(params));
    one.experts.weight_bytes =
        output.outputs * RowBytes(GetWeightFormat(output.weight.format), output.weight.cols);
    LLM_RETURN_IF_ERROR(RunOutput(linear, one, stream.stream));
  }
  return absl::OkStatus();
}

absl::Status Embed(const EmbedParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckEmbed(params));
  if (params.token_ids.empty()) return absl::OkStatus();
  EmbedArgs args = {};
  LLM_ASSIGN_OR_RETURN(args.token_ids, stream.uploads->Upload(stream.stream, params.token_ids));
  args.pending = params.pending;
  args.table = params.table.data;
  args.table_rows = params.table.rows;
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
