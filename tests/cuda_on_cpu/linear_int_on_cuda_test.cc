// int8 activations on tensor cores have the bits of the CPU backends with fused multiply-add, which
// add the same numbers in the same order: every format of integers, few rows and many, every kind
// of edge.
#include <bit>
#include <cstring>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "tests/cuda_on_cpu/host_table.h"
#include "tests/kernels/linear_fixture.h"

namespace llm {
namespace {

constexpr float kUntouched = -12345.0f;

struct Problem {
  Problem(WeightFormat format, int64_t rows, int64_t outputs, int64_t cols, std::mt19937* random)
      : weight(MakeRandomWeight(format, outputs, cols, random)),
        activations(rows, cols, random),
        bias(static_cast<size_t>(outputs)) {
    for (float& x : bias) x = std::normal_distribution<float>()(*random);
  }

  // Rows [begin, begin + count), three floats between them.
  std::vector<float> Run(const KernelTable& kernels, int64_t begin, int64_t count) const {
    const int64_t stride = weight.rows + 3;
    const auto packed = Pack(kernels, weight);
    std::vector<float> out(static_cast<size_t>(count * stride), kUntouched);
    const LinearOutput output = {packed->weight, bias.data(), out.data(), stride};
    const absl::Status status = kernels.linear({.activations = activations.Quants(begin, count),
                                                .outputs = absl::MakeConstSpan(&output, 1)},
                                               {});
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  RandomWeight weight;
  RandomActivations activations;
  std::vector<float> bias;
};

void ExpectSameBits(const std::vector<float>& actual, const float* expected) {
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << "element " << i << ": " << actual[i] << " and " << expected[i];
  }
}

class LinearIntOnCudaTest : public testing::TestWithParam<WeightFormat> {};

TEST_P(LinearIntOnCudaTest, HasTheBitsOfTheCpu) {
  std::mt19937 random(71);
  const KernelTable& cpu = *CpuKernelTables().front();
  if (std::string(cpu.name) == "generic") GTEST_SKIP() << "generic rounds products";
  const int64_t block = GetWeightFormat(GetParam()).block_size;
  // Few rows come 8 at a time with 16 outputs, many 64 with 64 outputs; steps have 256 columns.
  for (const auto& [rows, outputs, blocks] :
       {std::tuple{1, 17, 1}, {8, 16, 1600 / block}, {9, 65, 288 / block}, {67, 19, 1}}) {
    const int64_t cols = std::max<int64_t>(blocks, 1) * block;
    SCOPED_TRACE(testing::Message()
                 << rows << " rows, " << outputs << " outputs, " << cols << " columns");
    const Problem problem(GetParam(), rows, outputs, cols, &random);
    const std::vector<float> expected = problem.Run(cpu, 0, rows);
    ExpectSameBits(problem.Run(CudaOnCpuKernels(), 0, rows), expected.data());
  }
}

std::vector<WeightFormat> IntegerFormats() {
  std::vector<WeightFormat> formats;
  for (const WeightFormat format : AllWeightFormats()) {
    if (ReadsQuants(format)) formats.push_back(format);
  }
  return formats;
}

INSTANTIATE_TEST_SUITE_P(All, LinearIntOnCudaTest, testing::ValuesIn(IntegerFormats()),
                         [](const testing::TestParamInfo<WeightFormat>& param_info) {
                           return std::string(GetWeightFormat(param_info.param).name);
                         });

TEST(LinearIntBatchTest, ARowHasTheSameBitsInEveryBatch) {
  std::mt19937 random(73);
  for (const WeightFormat format : {WeightFormat::kQ4_K, WeightFormat::kQ6_K}) {
    const Problem problem(format, 70, 18, 512, &random);
    const std::vector<float> whole = problem.Run(CudaOnCpuKernels(), 0, 70);
    for (const int64_t count : {1, 2, 8, 9, 16, 64}) {
      SCOPED_TRACE(count);
      const int64_t begin = 70 - count;
      ExpectSameBits(problem.Run(CudaOnCpuKernels(), begin, count),
                     whole.data() + begin * (problem.weight.rows + 3));
    }
  }
}

}  // namespace
}  // namespace llm
