// Launchers of what reads weights.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/dense_linear.h"
#include "kernels/cuda/dense_ops.h"
#include "kernels/cuda/device_formats.h"
#include "kernels/cuda/device_ops.h"
#include "src/base/status_macros.h"

namespace llm::cuda {
namespace {

constexpr int64_t kChunkColumns = 8;  // 16 bytes of bf16: what the tensor cores' kernel copies
constexpr int64_t kRunColumns = 32;   // of plain elements that stand for a block
constexpr int64_t kFewRows = 32;      // whose kernel rounds them itself
constexpr int64_t kRoundedRows = 64;  // the least that are worth a launch of their own

absl::Status NoKernel(const char* op, WeightFormat format) {
  return absl::UnimplementedError(
      absl::StrCat(op, ": CUDA has no kernel for weights of ", GetWeightFormat(format).name));
}

// One weight for all rows, or one for each expert's.
struct Output {
  LinearOutput linear;  // of one expert
  ExpertRows experts;
};

// Weights of one format that one launch takes, all of them, or one.
using Outputs = absl::Span<const Output>;

bool RoundsToBF16(const LinearParams& params, DType type) {
  return params.round_to_bf16 && type == DType::kBF16;
}

bool MeetsQuants(const LinearParams& params, WeightFormat format) {
  return params.activations.quants != nullptr && ReadsQuants(format);
}

// Whether weights of `format` have a kernel that takes several.
bool TakesSeveral(const LinearParams& params, WeightFormat format) {
  const std::optional<DType> type = ElementType(format);
  if (!type) return !MeetsQuants(params, format);
  if (*type == DType::kF32) return false;
  return params.activations.cols % (RoundsToBF16(params, *type) ? kChunkColumns : kRunColumns) == 0;
}

MoreTargets TargetsOf(Outputs more) {
  MoreTargets targets = {};
  for (const Output& output : more) {
    const LinearOutput& linear = output.linear;
    targets.targets[targets.count++] = {linear.weight.data, output.experts.weight_bytes,
                                        linear.weight.rows, linear.bias,
                                        linear.out,         linear.out_stride};
  }
  return targets;
}

LinearBlocksArgs BlocksArgs(const LinearParams& params, Outputs outputs) {
  const LinearOutput& linear = outputs[0].linear;
  return {
      params.activations, linear.weight.data, linear.weight.rows, linear.bias,
      linear.out,         linear.out_stride,  outputs[0].experts, TargetsOf(outputs.subspan(1))};
}

LinearArgs ArgsOf(const LinearParams& params, Outputs outputs, DType type) {
  const Activations& a = params.activations;
  const Output& output = outputs[0];
  LinearArgs args = {};
  args.activations = a.values;
  args.rows = a.rows;
  args.cols = a.cols;
  args.weight = output.linear.weight.data;
  args.dtype = type;
  args.round_to_bf16 = RoundsToBF16(params, type);
  args.outputs = output.linear.weight.rows;
  args.bias = output.linear.bias;
  args.out = output.linear.out;
  args.out_stride = output.linear.out_stride;
  args.experts = output.experts;
  args.more = TargetsOf(outputs.subspan(1));
  return args;
}

// The part from row `first` on.
LinearArgs RowsOf(const LinearArgs& all, int64_t first, int64_t rows) {
  LinearArgs args = all;
  args.rows = rows;
  args.activations += first * all.cols;
  args.out += first * all.out_stride;
  for (LinearTarget& target :
       absl::MakeSpan(args.more.targets, static_cast<size_t>(args.more.count))) {
    target.out += first * target.out_stride;
  }
  return args;
}

// Many rows are rounded once for all blocks, as many at a time as there is memory for; those of
// experts, which only the device knows apart, all at once or not at all.
absl::Status LinearOfBF16(const LinearArgs& args, const CudaStream& stream) {
  const auto fitting = static_cast<int64_t>(stream.rounded_bytes / sizeof(uint16_t)) / args.cols;
  const bool once = fitting >= args.rows;
  if (args.rows <= kFewRows * args.experts.count || fitting < kRoundedRows ||
      (!once && args.experts.count > 1)) {
    return CudaStatus("linear", LaunchLinearBF16(args, stream.stream));
  }
  for (int64_t first = 0; first < args.rows; first += fitting) {
    LinearArgs part = RowsOf(args, first, std::min(fitting, args.rows - first));
    auto* rounded = reinterpret_cast<uint16_t*>(stream.rounded);
    LLM_RETURN_IF_CUDA_ERROR(
        "rounded rows",
        LaunchRoundRowsToBF16({part.activations, part.rows * part.cols, rounded}, stream.stream));
    part.rounded = rounded;
    LLM_RETURN_IF_CUDA_ERROR("linear", LaunchLinearBF16(part, stream.stream));
  }
  return absl::OkStatus();
}

absl::Status LinearOfElements(const LinearParams& params, Outputs outputs, DType type,
                              const CudaStream& stream) {
  const bool round_to_bf16 = RoundsToBF16(params, type);
  const int64_t cols = params.activations.cols;
  if (!round_to_bf16 && type != DType::kF32 && cols % kRunColumns == 0) {
    return CudaStatus("linear", LaunchLinearRuns(type, BlocksArgs(params, outputs), stream.stream));
  }
  const LinearArgs args = ArgsOf(params, outputs, type);
  return round_to_bf16 && cols % kChunkColumns == 0
             ? LinearOfBF16(args, stream)
             : CudaStatus("linear", LaunchLinearF32(args, stream.stream));
}

absl::Status LinearOfBlocks(const LinearParams& params, Outputs outputs, LaunchStream stream) {
  const WeightFormat weight_format = outputs[0].linear.weight.format;
  const std::optional<BlockFormat> format = BlockFormatOf(weight_format);
  if (!format) return NoKernel("linear", weight_format);
  const LinearBlocksArgs args = BlocksArgs(params, outputs);
  return CudaStatus("linear", MeetsQuants(params, weight_format)
                                  ? LaunchLinearInt(*format, args, stream)
                                  : LaunchLinearBlocks(*format, args, stream));
}

// Launches what it is given, neighbours of one format together.
class OutputRuns {
 public:
  OutputRuns(const LinearParams* params, const CudaStream* stream)
      : params_(*params), stream_(*stream) {}

  absl::Status Add(const Output& output) {
    const WeightFormat format = output.linear.weight.format;
    if (output.linear.weight.rows == 0) return absl::OkStatus();
    if (count_ > 0 && (format != outputs_[0].linear.weight.format || count_ == kMostTargets ||
                       !TakesSeveral(params_, format))) {
      LLM_RETURN_IF_ERROR(Finish());
    }
    outputs_[count_++] = output;
    return absl::OkStatus();
  }

  absl::Status Finish() {
    const Outputs outputs(outputs_, count_);
    count_ = 0;
    if (outputs.empty() || params_.activations.rows == 0) return absl::OkStatus();
    const std::optional<DType> type = ElementType(outputs[0].linear.weight.format);
    return type ? LinearOfElements(params_, outputs, *type, stream_)
                : LinearOfBlocks(params_, outputs, stream_.stream);
  }

 private:
  const LinearParams& params_;
  const CudaStream& stream_;
  Output outputs_[kMostTargets];
  size_t count_ = 0;
};

}  // namespace

absl::Status Linear(const LinearParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckLinear(params));
  if (stream.dense != nullptr) stream.dense->Begin();
  OutputRuns runs(&params, &stream);
  for (const LinearOutput& output : params.outputs) {
    if (stream.dense != nullptr) {
      LLM_ASSIGN_OR_RETURN(const bool done, stream.dense->Run(params, output, stream.stream));
      if (done) continue;
    }
    LLM_RETURN_IF_ERROR(runs.Add({output, {}}));
  }
  return runs.Finish();
}

absl::Status ExpertLinear(const ExpertLinearParams& params, const CudaStream& stream) {
  LLM_RETURN_IF_ERROR(CheckExpertLinearShapes(params));
  const LinearParams linear = {
      .activations = params.activations, .outputs = {}, .round_to_bf16 = params.round_to_bf16};
  OutputRuns runs(&linear, &stream);
  for (const ExpertOutput& output : params.outputs) {
    Output one;
    one.linear = {output.weight, output.bias, output.out, output.outputs};
    one.linear.weight.rows = output.outputs;
    one.experts.begin = params.expert_begin.empty() ? nullptr : params.expert_begin.data();
    one.experts.count = static_cast<int>(NumExperts(params));
    one.experts.weight_bytes =
        output.outputs * RowBytes(GetWeightFormat(output.weight.format), output.weight.cols);
    LLM_RETURN_IF_ERROR(runs.Add(one));
  }
  return runs.Finish();
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
