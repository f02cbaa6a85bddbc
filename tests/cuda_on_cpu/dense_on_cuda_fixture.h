// Linear layers by cuBLASLt on the emulated device, against double sums of what they are given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/cuda/dense_linear.h"
#include "kernels/quant/f8_e4m3.h"
#include "src/tensor/float_convert.h"
#include "tests/cuda_on_cpu/device_copies.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/libraries.h"
#include "tests/kernels/linear_fixture.h"

namespace llm {

using cuda_on_cpu::Libraries;

inline constexpr float kUntouched = -12345.0f;
inline constexpr int64_t kGap = 4;  // floats between rows: 16 bytes, as the library wants it

// Of a block's codes; both formats have them alike.
inline void GiveRowsOneScale(RandomWeight* weight) {
  const int64_t row_bytes = RowBytes(GetWeightFormat(weight->format), weight->cols);
  for (size_t i = 0; i < weight->blocks.size(); i += sizeof(F8_E4M3)) {
    const size_t row = i / static_cast<size_t>(row_bytes) * static_cast<size_t>(row_bytes);
    F8_E4M3 block;
    std::memcpy(&block, &weight->blocks[i], sizeof(block));
    std::memcpy(&block.scale, &weight->blocks[row], sizeof(block.scale));
    for (uint8_t& code : block.codes) code = (code & 0x7f) == 0x7f ? uint8_t{0} : code;  // NaN
    std::memcpy(&weight->blocks[i], &block, sizeof(block));
  }
  GetWeightFormat(weight->format)
      .decode(weight->blocks.data(), weight->rows * weight->cols, weight->decoded.data());
}

struct Problem {
  Problem(WeightFormat format, int64_t rows, int64_t outputs, int64_t cols, uint32_t seed = 61)
      : random(seed),
        weight(MakeRandomWeight(format, outputs, cols, &random)),
        activations(rows, cols, &random),
        bias(static_cast<size_t>(outputs)) {
    for (float& x : bias) x = std::normal_distribution<float>()(random);
    row_scales = format == WeightFormat::kF8_E4M3 || format == WeightFormat::kQ8_F32;
    if (row_scales) GiveRowsOneScale(&weight);
  }
  // Row `row` as the library is given it, or own kernels are.
  std::vector<float> Given(int64_t row) const {
    const float* x = &activations.values[static_cast<size_t>(row * weight.cols)];
    std::vector<float> given(x, x + weight.cols);
    if (!rounded) return given;
    float amax = 0;
    for (const float value : given) amax = std::max(amax, std::abs(value));
    for (float& value : given) {
      switch (weight.format) {
        case WeightFormat::kBF16:
          value = BF16ToF32(F32ToBF16(value));
          break;
        case WeightFormat::kF16:
          value = F16ToF32(F32ToF16(value));
          break;
        case WeightFormat::kF8_E4M3:
          value = F8E4M3ToF32(F32ToF8E4M3(value * (448 / amax))) * (amax / 448);
          break;
        default:
          value = std::nearbyint(value * (127 / amax)) * (amax / 127);
      }
    }
    return given;
  }

  std::mt19937 random;
  RandomWeight weight;
  RandomActivations activations;
  std::vector<float> bias;
  bool row_scales = false;
  bool with_bias = true;
  bool round = true;    // activations may be rounded
  bool rounded = true;  // and have been
  int64_t gap = kGap;
};

class DenseOnCudaTest : public GpuTest {
 protected:
  DenseOnCudaTest() { Libraries::Get().Reset(); }
  ~DenseOnCudaTest() override { Libraries::Get().Reset(); }
  void SetUp() override {
    const size_t bytes = DenseLinear::WorkspaceBytes({.max_rows = 600, .max_cols = 1024});
    memory_ = std::move(AllocateDevice(bytes, "library")).value();
    auto dense = DenseLinear::Create(static_cast<std::byte*>(memory_.get()), bytes);
    ASSERT_TRUE(dense.ok()) << dense.status();
    dense_ = *std::move(dense);
  }

  static Libraries& library() { return Libraries::Get(); }

  absl::StatusOr<std::vector<float>> TryRun(const Problem& p) {
    const int64_t rows = p.activations.rows;
    const int64_t stride = p.weight.rows + p.gap;
    std::vector<float> out(static_cast<size_t>(rows * stride), kUntouched);
    DeviceCopies copies;
    LinearOutput output;
    output.weight = {p.weight.format, p.weight.rows, p.weight.cols,
                     reinterpret_cast<const std::byte*>(
                         copies.In(p.weight.blocks.data(), p.weight.blocks.size())),
                     p.row_scales};
    if (p.with_bias) output.bias = copies.In(p.bias.data(), p.bias.size());
    output.out = copies.InOut(out.data(), out.size() - static_cast<size_t>(p.gap));
    output.out_stride = stride;
    const LinearParams params = {.activations = copies.InOut(p.activations.Values(0, rows)),
                                 .outputs = absl::MakeConstSpan(&output, 1),
                                 .round_to_bf16 = p.round};
    const absl::Status status = copies.Finish(
        cuda::Linear(params, {copies.stream().stream, copies.stream().uploads, dense_.get()}));
    if (!status.ok()) return status;
    return out;
  }
  void ExpectRight(const Problem& p) {
    const absl::StatusOr<std::vector<float>> out = TryRun(p);
    ASSERT_TRUE(out.ok()) << out.status() << gpu().fault();
    EXPECT_TRUE(IsNearDoubleSums(p, *out));
  }
  // By own kernels, which round no activations.
  void ExpectRightInF32(Problem p) {
    p.rounded = false;
    ExpectRight(p);
  }
  // As tests/kernels/linear_test.cc derives it.
  static testing::AssertionResult IsNearDoubleSums(const Problem& p,
                                                   const std::vector<float>& out) {
    const int64_t stride = p.weight.rows + p.gap;
    const double eps = std::numeric_limits<float>::epsilon();
    for (int64_t row = 0; row < p.activations.rows; ++row) {
      const std::vector<float> x = p.Given(row);
      for (int64_t output = 0; output < stride; ++output) {
        const float actual = out[static_cast<size_t>(row * stride + output)];
        double sum = double{kUntouched}, tolerance = 0;
        if (output < p.weight.rows) {
          double squares = 0, largest = 0;
          sum = 0;
          for (size_t k = 0; k < x.size(); ++k) {
            const double w = double{p.weight.decoded[static_cast<size_t>(output) * x.size() + k]};
            sum += double{x[k]} * w;
            squares += double{x[k]} * double{x[k]};
            largest = std::max(largest, std::abs(w));
          }
          const double bias = p.with_bias ? double{p.bias[static_cast<size_t>(output)]} : 0;
          tolerance = 4 * eps * std::sqrt(static_cast<double>(x.size()) * squares) * largest +
                      4 * eps * (std::abs(sum) + std::abs(bias));
          sum += bias;
        }
        if (!(std::abs(double{actual} - sum) <= tolerance)) {
          return testing::AssertionFailure() << "row " << row << " output " << output << " of "
                                             << p.weight.rows << ": " << actual << ", not " << sum;
        }
      }
    }
    return testing::AssertionSuccess();
  }

  DeviceMemoryOwner memory_;
  std::unique_ptr<DenseLinear> dense_;
};

}  // namespace llm
