// A product is asked for before anything is converted for it.
#include "kernels/cuda/dense_linear.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/dense_ops.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

// As the vendor's own recommendation for sm_90; sm_80 wants an eighth.
constexpr size_t kLibraryBytes = size_t{32} << 20;
constexpr size_t kAlignment = 256;                // of the library's workspace
constexpr size_t kCodesBytes = size_t{16} << 20;  // 4,096 outputs of 4,096 columns at once
constexpr int64_t kCodesBlock = 64;
constexpr size_t kScalesBytes = kCodesBytes / kCodesBlock * sizeof(float);
constexpr size_t kFixedBytes = kLibraryBytes + kCodesBytes + kScalesBytes;

// The library's pass over a weight costs three times its bytes, ours for fp8 three mma for each of
// its one: they meet at some 16 rows. For int8 ours has half its rate, and meets it at 400.
constexpr int64_t kE4M3Rows = 32;
constexpr int64_t kInt8Rows = 512;

std::optional<DenseType> TypeOf(const PackedWeight& weight, int64_t rows) {
  switch (weight.format) {
    case WeightFormat::kBF16:
      return DenseType::kBF16;
    case WeightFormat::kF16:
      return DenseType::kF16;
    case WeightFormat::kF8_E4M3:
      if (!weight.row_scales || rows < kE4M3Rows) return std::nullopt;
      return DenseType::kF8E4M3;
    case WeightFormat::kQ8_F32:
      if (!weight.row_scales || rows < kInt8Rows) return std::nullopt;
      return DenseType::kInt8;
    default:
      return std::nullopt;
  }
}

bool AreCodes(DenseType type) { return type == DenseType::kF8E4M3 || type == DenseType::kInt8; }

size_t ElementBytes(DenseType type) { return AreCodes(type) ? 1 : 2; }

size_t ScalesOffset(const Activations& a) {
  return RoundUp(static_cast<size_t>(a.rows * a.cols), kAlignment);
}

size_t RowsBytes(const Activations& a, DenseType type) {
  const auto elements = static_cast<size_t>(a.rows * a.cols);
  if (!AreCodes(type)) return elements * ElementBytes(type);
  return ScalesOffset(a) + static_cast<size_t>(a.rows) * sizeof(float);
}

}  // namespace

size_t DenseLinear::WorkspaceBytes(const DenseShape& shape) {
  const auto rows = static_cast<size_t>(shape.max_rows);
  const auto elements = rows * static_cast<size_t>(shape.max_cols);
  // Of the two layouts of rows the one of two bytes an element, or that of codes and scales.
  const size_t halves = elements * sizeof(uint16_t);
  const size_t codes = RoundUp(elements, kAlignment) + rows * sizeof(float);
  return kFixedBytes + RoundUp(std::max(halves, codes), kAlignment) + kAlignment;
}

absl::StatusOr<std::unique_ptr<DenseLinear>> DenseLinear::Create(std::byte* memory, size_t bytes) {
  const size_t misaligned = reinterpret_cast<uintptr_t>(memory) % kAlignment;
  const size_t skipped = misaligned == 0 ? 0 : kAlignment - misaligned;
  if (bytes < kFixedBytes + skipped) {
    return absl::InternalError("linear layers: no room for cuBLASLt");
  }
  std::byte* begin = memory + skipped;
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<CublasLt> library, CublasLt::Create(begin, kLibraryBytes));
  std::byte* codes = begin + kLibraryBytes;
  return std::unique_ptr<DenseLinear>(new DenseLinear(
      codes, begin + kFixedBytes, bytes - skipped - kFixedBytes, std::move(library)));
}

absl::StatusOr<bool> DenseLinear::Run(const LinearParams& params, const LinearOutput& output,
                                      LaunchStream stream) {
  const Activations& a = params.activations;
  if (!params.round_to_bf16 || a.rows == 0 || output.weight.rows == 0) return false;
  const std::optional<DenseType> type = TypeOf(output.weight, a.rows);
  if (!type || RowsBytes(a, *type) > rows_bytes_) return false;
  if (stream.recording != nullptr) {
    return absl::UnimplementedError("linear layers: what cuBLASLt does is in no graph");
  }
  return AreCodes(*type) ? RunCodes(params, output, *type, stream)
                         : RunFloats(params, output, *type, stream);
}

float* DenseLinear::row_scales(const Activations& a) const {
  return reinterpret_cast<float*>(rows_ + ScalesOffset(a));
}

absl::Status DenseLinear::Convert(const Activations& a, DenseType type, LaunchStream stream) {
  if (converted_ == type) return absl::OkStatus();
  converted_.reset();
  if (AreCodes(type)) {
    const CodeRowsArgs args = {a, reinterpret_cast<uint8_t*>(rows_), row_scales(a)};
    LLM_RETURN_IF_CUDA_ERROR("codes of rows", type == DenseType::kF8E4M3
                                                  ? LaunchCodeRowsE4M3(args, stream)
                                                  : LaunchCodeRowsInt8(args, stream));
  } else {
    const RoundRowsArgs args = {a.values, a.rows * a.cols, reinterpret_cast<uint16_t*>(rows_)};
    LLM_RETURN_IF_CUDA_ERROR("rounded rows", type == DenseType::kBF16
                                                 ? LaunchRoundRowsToBF16(args, stream)
                                                 : LaunchRoundRowsToF16(args, stream));
  }
  converted_ = type;
  return absl::OkStatus();
}

absl::StatusOr<bool> DenseLinear::RunFloats(const LinearParams& params, const LinearOutput& output,
                                            DenseType type, LaunchStream stream) {
  const Activations& a = params.activations;
  if (a.values == nullptr) return false;
  const DenseProduct product = {.type = type,
                                .rows = a.rows,
                                .outputs = output.weight.rows,
                                .cols = a.cols,
                                .activations = rows_,
                                .weight = output.weight.data,
                                .bias = output.bias,
                                .out = output.out,
                                .out_stride = output.out_stride};
  if (!library_->Supports(product)) return false;
  LLM_RETURN_IF_ERROR(Convert(a, type, stream));
  return library_->Multiply(product, stream.stream);
}

absl::StatusOr<bool> DenseLinear::RunCodes(const LinearParams& params, const LinearOutput& output,
                                           DenseType type, LaunchStream stream) {
  const Activations& a = params.activations;
  const int64_t outputs = output.weight.rows;
  const int64_t row_bytes = RowBytes(GetWeightFormat(output.weight.format), a.cols);
  // Whole tiles of outputs; the results of a part that begins there are aligned too.
  const int64_t most = static_cast<int64_t>(kCodesBytes) / a.cols / kPackTileRows * kPackTileRows;
  if (most == 0) return false;
  auto* codes = reinterpret_cast<uint8_t*>(weight_codes_);
  auto* scales = reinterpret_cast<float*>(weight_codes_ + kCodesBytes);
  for (int64_t first = 0; first < outputs; first += most) {
    const int64_t count = std::min(most, outputs - first);
    const DenseProduct product = {.type = type,
                                  .rows = a.rows,
                                  .outputs = count,
                                  .cols = a.cols,
                                  .activations = rows_,
                                  .weight = codes,
                                  .bias = nullptr,
                                  .out = output.out + first,
                                  .out_stride = output.out_stride};
    if (!library_->Supports(product)) return false;
    LLM_RETURN_IF_ERROR(Convert(a, type, stream));
    LLM_RETURN_IF_CUDA_ERROR(
        "codes of weights",
        LaunchCodesOfBlocks({output.weight.data + first * row_bytes, count, a.cols, codes, scales},
                            stream));
    if (!library_->Multiply(product, stream.stream)) return false;
    LLM_RETURN_IF_CUDA_ERROR(
        "scaled sums",
        LaunchScaleSums(
            {row_scales(a), scales, output.bias != nullptr ? output.bias + first : nullptr,
             output.out + first, a.rows, count, output.out_stride, type == DenseType::kInt8},
            stream));
  }
  return true;
}

}  // namespace llm
