// f32 activations as three bf16 on tensor cores give what f32 gives, in both orders of the
// additions inside of an mma.
#include <cmath>
#include <limits>

#include "tests/cuda_on_cpu/host_table.h"
#include "tests/cuda_on_cpu/warp.h"
#include "tests/kernels/linear_fixture.h"

namespace llm {
namespace {

class LinearSplitOnCudaTest : public testing::TestWithParam<WeightFormat> {
 protected:
  ~LinearSplitOnCudaTest() override {
    cuda_on_cpu::set_mma_order(cuda_on_cpu::MmaOrder::kAscending);
  }
};

// As tests/kernels/linear_test.cc derives it.
void ExpectNearDoubleSums(const RandomActivations& a, const RandomWeight& weight,
                          const std::vector<float>& out) {
  const double eps = std::numeric_limits<float>::epsilon();
  for (int64_t i = 0; i < a.rows * weight.rows; ++i) {
    const float* x = &a.values[static_cast<size_t>(i / weight.rows * a.cols)];
    const float* w = &weight.decoded[static_cast<size_t>(i % weight.rows * a.cols)];
    double sum = 0, squares = 0, largest = 0;
    for (int64_t k = 0; k < a.cols; ++k) {
      sum += double{x[k]} * double{w[k]};
      squares += double{x[k]} * double{x[k]};
      largest = std::max(largest, std::abs(double{w[k]}));
    }
    const double tolerance =
        4 * eps * std::sqrt(static_cast<double>(a.cols) * squares) * largest + eps * std::abs(sum);
    ASSERT_NEAR(double{out[static_cast<size_t>(i)]}, sum, tolerance)
        << "row " << i / weight.rows << " output " << i % weight.rows;
  }
}

TEST_P(LinearSplitOnCudaTest, GivesWhatF32Gives) {
  std::mt19937 random(79);
  for (const auto order : {cuda_on_cpu::MmaOrder::kAscending, cuda_on_cpu::MmaOrder::kPairs}) {
    cuda_on_cpu::set_mma_order(order);
    for (const auto& [rows, outputs] : {std::pair{1, 65}, {8, 16}, {17, 19}}) {
      const RandomWeight weight = MakeRandomWeight(GetParam(), outputs, 768, &random);
      const auto packed = Pack(CudaOnCpuKernels(), weight);
      RandomActivations a(rows, 768, &random);
      // Every bit of a mantissa counts, and sizes far apart.
      for (size_t i = 0; i < a.values.size(); i += 7) a.values[i] *= 0x1p-20f;
      std::vector<float> out(static_cast<size_t>(rows * outputs));
      const LinearOutput output = {packed->weight, nullptr, out.data(), outputs};
      const absl::Status status = CudaOnCpuKernels().linear(
          {.activations = a.Values(0, rows), .outputs = absl::MakeConstSpan(&output, 1)}, {});
      ASSERT_TRUE(status.ok()) << status;
      ExpectNearDoubleSums(a, weight, out);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinearSplitOnCudaTest,
                         testing::Values(WeightFormat::kF16, WeightFormat::kBF16,
                                         WeightFormat::kF8_E4M3, WeightFormat::kMXFP8,
                                         WeightFormat::kBF16_24, WeightFormat::kQ4_K,
                                         WeightFormat::kQ6_K, WeightFormat::kQ8_Z),
                         [](const testing::TestParamInfo<WeightFormat>& param_info) {
                           return std::string(GetWeightFormat(param_info.param).name);
                         });

}  // namespace
}  // namespace llm
