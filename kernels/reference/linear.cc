// Decodes a piece of one weight row at a time and multiplies it with a block of activation rows.
#include <algorithm>
#include <array>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

constexpr int64_t kPiece = 256;    // columns decoded at once: a multiple of every block size
constexpr int64_t kRowBlock = 64;  // activation rows that share one decoding

enum class Form { kF32, kBF16, kInt8 };  // in which the activations are read

Form ReadAs(const LinearParams& params, WeightFormat format) {
  if (params.activations.quants != nullptr && ReadsQuants(format)) return Form::kInt8;
  return params.round_to_bf16 && format == WeightFormat::kBF16 ? Form::kBF16 : Form::kF32;
}

// Sum of columns [col, col + count) of row `row`, times the weights w[0, count).
double Dot(const Activations& a, Form form, int64_t row, int64_t col, const float* w,
           int64_t count) {
  double sum = 0;
  if (form != Form::kInt8) {
    const float* x = a.values + row * a.cols + col;
    for (int64_t i = 0; i < count; ++i) {
      sum += double{form == Form::kBF16 ? BF16ToF32(F32ToBF16(x[i])) : x[i]} * double{w[i]};
    }
    return sum;
  }
  const int8_t* q = a.quants + row * a.cols + col;
  const float* scales = a.scales + (row * a.cols + col) / kActivationGroup;
  for (int64_t g = 0; g < count / kActivationGroup; ++g) {
    double group = 0;
    for (int64_t i = g * kActivationGroup; i < (g + 1) * kActivationGroup; ++i) {
      group += static_cast<double>(q[i]) * double{w[i]};
    }
    sum += double{scales[g]} * group;
  }
  return sum;
}

void OutputColumn(const LinearParams& params, const LinearOutput& output, int64_t column) {
  const Activations& a = params.activations;
  const WeightFormatInfo& info = GetWeightFormat(output.weight.format);
  const Form form = ReadAs(params, output.weight.format);
  const std::byte* weight_row = output.weight.data + column * RowBytes(info, a.cols);
  std::array<float, kPiece> w;
  for (int64_t begin = 0; begin < a.rows; begin += kRowBlock) {
    const int64_t num_rows = std::min(kRowBlock, a.rows - begin);
    std::array<double, kRowBlock> sums{};
    for (int64_t col = 0; col < a.cols; col += kPiece) {
      const int64_t count = std::min(kPiece, a.cols - col);
      info.decode(weight_row + RowBytes(info, col), count, w.data());
      for (int64_t r = 0; r < num_rows; ++r) {
        sums[static_cast<size_t>(r)] += Dot(a, form, begin + r, col, w.data(), count);
      }
    }
    const double bias = output.bias != nullptr ? double{output.bias[column]} : 0.0;
    for (int64_t r = 0; r < num_rows; ++r) {
      output.out[(begin + r) * output.out_stride + column] =
          static_cast<float>(sums[static_cast<size_t>(r)] + bias);
    }
  }
}

}  // namespace

absl::Status ReferenceLinear(const LinearParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckLinear(params));
  for (const LinearOutput& output : params.outputs) {
    RunTasks(stream, output.weight.rows,
             [&](int64_t column, int /*worker*/) { OutputColumn(params, output, column); });
  }
  return absl::OkStatus();
}

}  // namespace llm
