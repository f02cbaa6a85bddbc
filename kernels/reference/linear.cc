// Decodes a piece of one weight row at a time and multiplies it with a block of activation rows.
#include <algorithm>
#include <array>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr int64_t kPiece = 256;    // columns decoded at once: a multiple of every block size
constexpr int64_t kRowBlock = 64;  // activation rows that share one decoding

// Sum of columns [col, col + count) of row `row`, times the weights w[0, count).
double Dot(const Activations& a, bool quantised, int64_t row, int64_t col, const float* w,
           int64_t count) {
  double sum = 0;
  if (!quantised) {
    const float* x = a.values + row * a.cols + col;
    for (int64_t i = 0; i < count; ++i) sum += double{x[i]} * double{w[i]};
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

void OutputColumn(const Activations& a, const LinearOutput& output, int64_t column) {
  const WeightFormatInfo& info = GetWeightFormat(output.weight.format);
  const bool quantised = a.quants != nullptr && ReadsQuants(output.weight.format);
  const std::byte* weight_row = output.weight.data + column * RowBytes(info, a.cols);
  std::array<float, kPiece> w;
  for (int64_t begin = 0; begin < a.rows; begin += kRowBlock) {
    const int64_t num_rows = std::min(kRowBlock, a.rows - begin);
    std::array<double, kRowBlock> sums{};
    for (int64_t col = 0; col < a.cols; col += kPiece) {
      const int64_t count = std::min(kPiece, a.cols - col);
      info.decode(weight_row + RowBytes(info, col), count, w.data());
      for (int64_t r = 0; r < num_rows; ++r) {
        sums[static_cast<size_t>(r)] += Dot(a, quantised, begin + r, col, w.data(), count);
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
    RunTasks(stream, output.weight.rows, [&](int64_t column, int /*worker*/) {
      OutputColumn(params.activations, output, column);
    });
  }
  return absl::OkStatus();
}

}  // namespace llm
