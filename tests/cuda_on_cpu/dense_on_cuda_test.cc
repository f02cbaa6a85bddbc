// Linear layers by cuBLASLt against double sums of what it is given, in two orders of additions;
// what is not for it is done by own kernels.
#include "tests/cuda_on_cpu/dense_on_cuda_fixture.h"

namespace llm {
namespace {

class DenseTypeTest : public DenseOnCudaTest, public testing::WithParamInterface<WeightFormat> {};

TEST_P(DenseTypeTest, EqualsDoubleSumsInEveryOrder) {
  gpu().set_capability(8, 9);
  const bool codes = GetParam() == WeightFormat::kF8_E4M3;
  const bool integers = GetParam() == WeightFormat::kQ8_F32;
  for (const auto order : {Libraries::Order::kAscending, Libraries::Order::kHalves}) {
    library().order = order;
    for (const auto& [rows, outputs, cols] :
         {std::tuple{1, 16, 64}, {3, 48, 192}, {33, 80, 128}, {70, 32, 320}}) {
      const int64_t many = integers ? 511 + rows : codes ? 31 + rows : rows;
      SCOPED_TRACE(testing::Message() << many << " rows, " << outputs << " outputs, " << cols);
      Problem problem(GetParam(), many, outputs, cols);
      problem.with_bias = rows != 3;
      const int64_t before = library().num_products;
      ExpectRight(problem);
      EXPECT_EQ(library().num_products, before + 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DenseTypeTest,
                         testing::Values(WeightFormat::kBF16, WeightFormat::kF16,
                                         WeightFormat::kF8_E4M3, WeightFormat::kQ8_F32),
                         [](const testing::TestParamInfo<WeightFormat>& param_info) {
                           return std::string(GetWeightFormat(param_info.param).name);
                         });

TEST_F(DenseOnCudaTest, AnAlgorithmIsChosenOnceForAShape) {
  for (const int64_t rows : {5, 7, 8, 5}) ExpectRight(Problem(WeightFormat::kBF16, rows, 32, 64));
  EXPECT_EQ(library().num_choices, 1);
  ExpectRight(Problem(WeightFormat::kBF16, 9, 32, 64));
  EXPECT_EQ(library().num_choices, 2);
  ExpectRight(Problem(WeightFormat::kF16, 9, 32, 64));
  EXPECT_EQ(library().num_choices, 3);
  // Neither's algorithm is another shape's.
  ExpectRight(Problem(WeightFormat::kBF16, 9, 48, 64));
  ExpectRight(Problem(WeightFormat::kBF16, 9, 32, 128));
  EXPECT_EQ(library().num_choices, 5);
  EXPECT_EQ(library().num_products, 8);
}

// One activation, three outputs: rounded once.
TEST_F(DenseOnCudaTest, OutputsOfOneCallShareTheRoundedRows) {
  Problem p(WeightFormat::kBF16, 4, 32, 64);
  std::vector<float> out(3 * 4 * 32);
  DeviceCopies copies;
  const auto* weight =
      reinterpret_cast<const std::byte*>(copies.In(p.weight.blocks.data(), p.weight.blocks.size()));
  float* results = copies.InOut(out.data(), out.size());
  LinearOutput outputs[3];
  for (LinearOutput& output : outputs) {
    output = {{p.weight.format, 32, 64, weight}, nullptr, results, 32};
    results += 4 * 32;
  }
  const LinearParams params = {.activations = copies.InOut(p.activations.Values(0, 4)),
                               .outputs = outputs,
                               .round_to_bf16 = true};
  const CudaStream stream = {copies.stream().stream, copies.stream().uploads, dense_.get()};
  const int64_t before = gpu().num_launches();
  ASSERT_TRUE(copies.Finish(cuda::Linear(params, stream)).ok());
  EXPECT_EQ(gpu().num_launches(), before + 1);
  EXPECT_EQ(library().num_products, 3);
  p.with_bias = false;
  p.gap = 0;
  for (size_t i = 0; i < 3; ++i) {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(i * 4 * 32);
    EXPECT_TRUE(IsNearDoubleSums(p, {begin, begin + 4 * 32})) << i;
  }
}

TEST_F(DenseOnCudaTest, ARowOfAnotherCallIsNotTakenForThisOnes) {
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64, 61));
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64, 67));
  EXPECT_EQ(library().num_products, 2);
}

// A weight that begins 16 bytes behind an allocation's begin.
TEST_F(DenseOnCudaTest, LessAlignmentThanAnAllocationsWillDo) {
  Problem p(WeightFormat::kBF16, 4, 32, 64);
  std::vector<uint8_t> shifted(16);
  shifted.insert(shifted.end(), p.weight.blocks.begin(), p.weight.blocks.end());
  std::vector<float> out(4 * 32);
  DeviceCopies copies;
  const auto* weight =
      reinterpret_cast<const std::byte*>(copies.In(shifted.data(), shifted.size())) + 16;
  const LinearOutput output = {
      {p.weight.format, 32, 64, weight}, nullptr, copies.InOut(out.data(), out.size()), 32};
  const LinearParams params = {.activations = copies.InOut(p.activations.Values(0, 4)),
                               .outputs = absl::MakeConstSpan(&output, 1),
                               .round_to_bf16 = true};
  const CudaStream stream = {copies.stream().stream, copies.stream().uploads, dense_.get()};
  ASSERT_TRUE(copies.Finish(cuda::Linear(params, stream)).ok());
  EXPECT_EQ(library().num_products, 1);
  p.with_bias = false;
  p.gap = 0;
  EXPECT_TRUE(IsNearDoubleSums(p, out));
}

TEST_F(DenseOnCudaTest, WhatIsNotAlignedIsLeftToOwnKernels) {
  Problem gap(WeightFormat::kBF16, 4, 32, 64);
  gap.gap = 3;
  ExpectRight(gap);
  ExpectRight(Problem(WeightFormat::kBF16, 4, 30, 64));
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 68));
  EXPECT_EQ(library().num_choices, 0);
}

TEST_F(DenseOnCudaTest, ActivationsThatStayInF32AreLeftToOwnKernels) {
  Problem problem(WeightFormat::kBF16, 4, 32, 64);
  problem.round = false;
  ExpectRightInF32(problem);
  EXPECT_EQ(library().num_choices, 0);
}

TEST_F(DenseOnCudaTest, FewRowsAndBlocksOfTheirOwnScaleKeepTheirKernels) {
  gpu().set_capability(8, 9);
  ExpectRightInF32(Problem(WeightFormat::kF8_E4M3, 31, 32, 64));
  Problem blocks(WeightFormat::kF8_E4M3, 32, 32, 128);
  blocks.row_scales = false;
  ExpectRightInF32(blocks);
  EXPECT_EQ(library().num_choices, 0);
}

TEST_F(DenseOnCudaTest, DevicesWithoutFp8KeepTheirKernels) {
  ExpectRightInF32(Problem(WeightFormat::kF8_E4M3, 32, 32, 64));
  EXPECT_EQ(library().num_choices, 1);
  EXPECT_EQ(library().num_products, 0);
}

// A row with an infinite value has no results, and leaves those of others alone.
TEST_F(DenseOnCudaTest, WhatIsNotFiniteStaysInItsRow) {
  gpu().set_capability(8, 9);
  for (const WeightFormat format :
       {WeightFormat::kBF16, WeightFormat::kF16, WeightFormat::kF8_E4M3}) {
    Problem problem(format, 40, 32, 64);
    const absl::StatusOr<std::vector<float>> before = TryRun(problem);
    ASSERT_TRUE(before.ok()) << before.status();
    problem.activations.values[64 * 7 + 3] = std::numeric_limits<float>::infinity();
    const absl::StatusOr<std::vector<float>> after = TryRun(problem);
    ASSERT_TRUE(after.ok()) << after.status();
    for (size_t i = 0; i < after->size(); ++i) {
      const size_t row = i / 36;
      if (i % 36 >= 32) continue;
      if (row == 7) {
        EXPECT_FALSE(std::isfinite((*after)[i]));
      } else {
        EXPECT_EQ((*after)[i], (*before)[i]);
      }
    }
  }
}

}  // namespace
}  // namespace llm
