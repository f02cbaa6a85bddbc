// BF16 weights on tensor cores: against double sums for every kind of edge, in two orders of the
// additions inside of an mma, and with the same bits in every batch.
#include <bit>
#include <cmath>
#include <limits>

#include "src/tensor/float_convert.h"
#include "tests/cuda_on_cpu/device_copies.h"
#include "tests/cuda_on_cpu/gpu.h"
#include "tests/cuda_on_cpu/host_table.h"
#include "tests/cuda_on_cpu/warp.h"
#include "tests/kernels/linear_fixture.h"

namespace llm {
namespace {

constexpr float kUntouched = -12345.0f;

struct Problem {
  Problem(int64_t rows, int64_t outputs, int64_t cols, std::mt19937* random)
      : weight(MakeRandomWeight(WeightFormat::kBF16, outputs, cols, random)),
        packed(Pack(CudaOnCpuKernels(), weight)),
        activations(rows, cols, random),
        bias(static_cast<size_t>(outputs)) {
    for (float& x : bias) x = std::normal_distribution<float>()(*random);
  }

  // Rows [begin, begin + count), three floats between them.
  std::vector<float> Run(int64_t begin, int64_t count) const {
    const int64_t stride = weight.rows + 3;
    std::vector<float> out(static_cast<size_t>(count * stride), kUntouched);
    const LinearOutput output = {packed->weight, bias.data(), out.data(), stride};
    const absl::Status status =
        CudaOnCpuKernels().linear({.activations = activations.Values(begin, count),
                                   .outputs = absl::MakeConstSpan(&output, 1),
                                   .round_to_bf16 = true},
                                  {});
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  RandomWeight weight;
  std::unique_ptr<Packed> packed;
  RandomActivations activations;
  std::vector<float> bias;
};

// As tests/kernels/linear_test.cc derives it.
void ExpectNearDoubleSums(const Problem& problem, const std::vector<float>& out) {
  const int64_t cols = problem.weight.cols;
  const int64_t stride = problem.weight.rows + 3;
  const double eps = std::numeric_limits<float>::epsilon();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / stride;
    const auto output = static_cast<int64_t>(i) % stride;
    if (output >= problem.weight.rows) {
      ASSERT_EQ(out[i], kUntouched) << "row " << row << " output " << output;
      continue;
    }
    double sum = double{problem.bias[static_cast<size_t>(output)]};
    double squares = 0, largest = 0;
    for (int64_t k = 0; k < cols; ++k) {
      const float x = problem.activations.values[static_cast<size_t>(row * cols + k)];
      const float w = problem.weight.decoded[static_cast<size_t>(output * cols + k)];
      const double rounded = double{BF16ToF32(F32ToBF16(x))};
      sum += rounded * double{w};
      squares += rounded * rounded;
      largest = std::max(largest, std::abs(double{w}));
    }
    const double tolerance =
        4 * eps * std::sqrt(static_cast<double>(cols) * squares) * largest + eps * std::abs(sum);
    ASSERT_NEAR(double{out[i]}, sum, tolerance) << "row " << row << " output " << output;
  }
}

class LinearBF16OnCudaTest : public testing::Test {
 protected:
  ~LinearBF16OnCudaTest() override {
    cuda_on_cpu::set_mma_order(cuda_on_cpu::MmaOrder::kAscending);
  }
};

TEST_F(LinearBF16OnCudaTest, EqualsDoubleSumsAtEveryEdge) {
  std::mt19937 random(61);
  for (const auto order : {cuda_on_cpu::MmaOrder::kAscending, cuda_on_cpu::MmaOrder::kPairs}) {
    cuda_on_cpu::set_mma_order(order);
    // Tiles of 16, 32 or 64 outputs and up to 32 rows, as fill the device's four multiprocessors,
    // and 128 columns in up to six stages; then tiles of 64 x 64, 128 x 64 and 256 x 128, and 32
    // columns in four.
    for (const auto& [rows, outputs, cols] : {std::tuple{1, 32, 8},
                                              {1, 65, 1544},
                                              {8, 63, 96},
                                              {3, 130, 136},
                                              {7, 257, 648},
                                              {16, 16, 40},
                                              {17, 150, 264},
                                              {31, 290, 520},
                                              {65, 70, 328},
                                              {33, 64, 32},
                                              {70, 260, 136},
                                              {130, 600, 72},
                                              {1030, 20, 40}}) {
      SCOPED_TRACE(testing::Message()
                   << rows << " rows, " << outputs << " outputs, " << cols << " columns");
      const Problem problem(rows, outputs, cols, &random);
      ExpectNearDoubleSums(problem, problem.Run(0, rows));
    }
  }
}

TEST_F(LinearBF16OnCudaTest, ARowHasTheSameBitsInEveryBatch) {
  std::mt19937 random(67);
  constexpr int64_t kRows = 140;  // the largest tile; 70 rows: the middle one
  const Problem problem(kRows, 300, 264, &random);
  const std::vector<float> whole = problem.Run(0, kRows);
  for (const int64_t count : {1, 2, 8, 9, 16, 17, 32, 33, 64, 70}) {
    const int64_t begin = kRows - count;
    const std::vector<float> part = problem.Run(begin, count);
    for (size_t i = 0; i < part.size(); ++i) {
      const auto expected = whole[static_cast<size_t>(begin * 303) + i];
      ASSERT_EQ(std::bit_cast<uint32_t>(part[i]), std::bit_cast<uint32_t>(expected))
          << count << " rows, element " << i;
    }
  }
}

// Rounded once for all blocks, as many rows at a time as there is memory for.
TEST_F(LinearBF16OnCudaTest, RowsThatWereRoundedBeforeGiveTheSameBits) {
  std::mt19937 random(73);
  constexpr int64_t kRows = 140, kCols = 264;
  for (const int64_t outputs : {20, 150, 300}) {
    const Problem problem(kRows, outputs, kCols, &random);
    const std::vector<float> expected = problem.Run(0, kRows);
    for (const int64_t fitting : {kRows, int64_t{70}}) {
      SCOPED_TRACE(testing::Message() << outputs << " outputs, " << fitting << " rows fit");
      std::vector<float> out(expected.size(), kUntouched);
      std::vector<std::byte> rounded(static_cast<size_t>(fitting * kCols) * sizeof(uint16_t));
      DeviceCopies copies;
      LinearOutput output = {problem.packed->weight, nullptr, copies.InOut(out.data(), out.size()),
                             outputs + 3};
      output.weight.data = copies.In(output.weight.data, static_cast<size_t>(outputs * kCols) * 2);
      output.bias = copies.In(problem.bias.data(), problem.bias.size());
      CudaStream stream = copies.stream();
      stream.rounded = copies.InOut(rounded.data(), rounded.size());
      stream.rounded_bytes = rounded.size();
      const int64_t before = cuda_on_cpu::Gpu::Get().num_launches();
      const absl::Status status = copies.Finish(
          cuda::Linear({.activations = copies.InOut(problem.activations.Values(0, kRows)),
                        .outputs = absl::MakeConstSpan(&output, 1),
                        .round_to_bf16 = true},
                       stream));
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(cuda_on_cpu::Gpu::Get().num_launches() - before, fitting == kRows ? 2 : 4);
      EXPECT_EQ(out, expected);
    }
  }
}

// More than one launch takes.
TEST_F(LinearBF16OnCudaTest, OutputsOfOneCallHaveTheBitsOfSeparateCalls) {
  std::mt19937 random(71);
  constexpr int64_t kOutputs[] = {70, 16, 129, 33, 64};
  for (const int64_t rows : {3, 40}) {
    std::vector<Problem> problems;
    for (const int64_t outputs : kOutputs) problems.emplace_back(rows, outputs, 136, &random);
    std::vector<std::vector<float>> results;
    std::vector<LinearOutput> outputs;
    for (Problem& problem : problems) {
      problem.activations.values = problems[0].activations.values;
      const int64_t stride = problem.weight.rows + 3;
      results.emplace_back(static_cast<size_t>(rows * stride), kUntouched);
      outputs.push_back(
          {problem.packed->weight, problem.bias.data(), results.back().data(), stride});
    }
    const absl::Status status =
        CudaOnCpuKernels().linear({.activations = problems[0].activations.Values(0, rows),
                                   .outputs = outputs,
                                   .round_to_bf16 = true},
                                  {});
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < problems.size(); ++i) {
      EXPECT_EQ(results[i], problems[i].Run(0, rows)) << rows << " rows, output " << i;
    }
  }
}

}  // namespace
}  // namespace llm
