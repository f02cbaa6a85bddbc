// f32 activations as two f16 or three bf16 on tensor cores give what f32 gives, in both orders of
// the additions inside of an mma, and the same bits in every batch.
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cuda/tile_grid.h"
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

std::vector<float> RunLinear(const Packed& packed, const RandomActivations& a, int64_t begin,
                             int64_t count) {
  std::vector<float> out(static_cast<size_t>(count * packed.weight.rows));
  const LinearOutput output = {packed.weight, nullptr, out.data(), packed.weight.rows};
  const absl::Status status = CudaOnCpuKernels().linear(
      {.activations = a.Values(begin, count), .outputs = absl::MakeConstSpan(&output, 1)}, {});
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

// Every bit of a mantissa counts, and sizes far apart.
RandomActivations MakeActivations(int64_t rows, int64_t cols, std::mt19937* random) {
  RandomActivations a(rows, cols, random);
  for (size_t i = 0; i < a.values.size(); i += 7) a.values[i] *= 0x1p-20f;
  return a;
}

TEST_P(LinearSplitOnCudaTest, GivesWhatF32Gives) {
  std::mt19937 random(79);
  for (const auto order : {cuda_on_cpu::MmaOrder::kAscending, cuda_on_cpu::MmaOrder::kPairs}) {
    cuda_on_cpu::set_mma_order(order);
    // Few rows; tiles of 64 x 32, 128 x 64 and, where weights are floats, 256 x 64, as they fill
    // the device's four multiprocessors.
    for (const auto& [rows, outputs, cols] : {std::tuple{1, 65, 1792},
                                              {8, 16, 768},
                                              {17, 19, 768},
                                              {40, 65, 256},
                                              {40, 400, 256},
                                              {70, 530, 256}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << outputs << " outputs");
      const RandomWeight weight = MakeRandomWeight(GetParam(), outputs, cols, &random);
      const auto packed = Pack(CudaOnCpuKernels(), weight);
      const RandomActivations a = MakeActivations(rows, cols, &random);
      ExpectNearDoubleSums(a, weight, RunLinear(*packed, a, 0, rows));
    }
  }
}

TEST_P(LinearSplitOnCudaTest, ARowHasTheSameBitsInEveryBatch) {
  std::mt19937 random(83);
  constexpr int64_t kRows = 70, kOutputs = 400, kCols = 512;
  const auto packed =
      Pack(CudaOnCpuKernels(), MakeRandomWeight(GetParam(), kOutputs, kCols, &random));
  const RandomActivations a = MakeActivations(kRows, kCols, &random);
  const std::vector<float> whole = RunLinear(*packed, a, 0, kRows);
  for (const int64_t count : {1, 7, 8, 9, 32, 40}) {
    const int64_t begin = kRows - count;
    const std::vector<float> part = RunLinear(*packed, a, begin, count);
    for (size_t i = 0; i < part.size(); ++i) {
      const float expected = whole[static_cast<size_t>(begin * kOutputs) + i];
      ASSERT_EQ(std::bit_cast<uint32_t>(part[i]), std::bit_cast<uint32_t>(expected))
          << count << " rows, element " << i;
    }
  }
}

TEST_P(LinearSplitOnCudaTest, OutputsOfOneCallHaveTheBitsOfSeparateCalls) {
  std::mt19937 random(89);
  constexpr int64_t kCols = 256;
  for (const int64_t rows : {3, 40}) {
    const RandomActivations a = MakeActivations(rows, kCols, &random);
    std::vector<std::unique_ptr<Packed>> weights;
    std::vector<std::vector<float>> results;
    std::vector<LinearOutput> outputs;
    for (const int64_t count : {70, 16, 129}) {
      weights.push_back(
          Pack(CudaOnCpuKernels(), MakeRandomWeight(GetParam(), count, kCols, &random)));
      results.emplace_back(static_cast<size_t>(rows * count));
      outputs.push_back({weights.back()->weight, nullptr, results.back().data(), count});
    }
    const absl::Status status =
        CudaOnCpuKernels().linear({.activations = a.Values(0, rows), .outputs = outputs}, {});
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(results[i], RunLinear(*weights[i], a, 0, rows)) << rows << " rows, output " << i;
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

// 128 heads of latent attention and steps of 32,768 tokens: more than a grid's y holds.
TEST(TileGridTest, TilesOfRowsBeyondAGridsYGoOnInZ) {
  for (const unsigned tiles : {65535u, 65536u, 70000u, 131070u, 131071u}) {
    const dim3 grid = TileGrid(3, tiles);
    EXPECT_LE(grid.y, 65535u);
    EXPECT_GE(grid.y * grid.z, tiles);
    EXPECT_LT(grid.y * (grid.z - 1), tiles);
  }
  EXPECT_EQ(TileGrid(3, 7).z, 1u);
  EXPECT_EQ(NumBlocks(TileGrid(3, 7)), 21);
}

}  // namespace
}  // namespace llm
