// rms_norm: hand-computed rows, every backend against the reference, quantisation, independence of
// the batch.
#include <limits>

#include "tests/kernels/kernel_test_util.h"

namespace llm {
namespace {

class RmsNormTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, RmsNormTest, testing::ValuesIn(AvailableKernels()), BackendName);

TEST_P(RmsNormTest, NormsAHandComputedRow) {
  const Aligned<float> input = {1, 2, 3, 4};
  const Aligned<float> weight = {1, 1, 2, 0.5f};
  ActivationMemory out(1, 4, Forms::kValues);
  ASSERT_TRUE(
      kernels()
          .rms_norm(
              {.input = input.data(), .weight = weight.data(), .eps = 0.5f, .output = out.View()},
              {})
          .ok());
  // mean(x^2) + eps = 8
  ExpectNear(out.values, {0.353553391f, 0.707106781f, 2.12132034f, 0.707106781f}, 4e-7);
}

struct Case {
  int64_t cols;
  bool with_input;
  bool with_residual;
};

struct Result {
  ActivationMemory output;
  Aligned<float> residual;
};

Result RunRmsNorm(const KernelTable& kernels, const Case& c, int64_t rows, Forms forms,
                  int num_threads) {
  const size_t size = static_cast<size_t>(rows * c.cols);
  const Aligned<float> input = RandomFloats(size, 1, 3.0f);
  const Aligned<float> weight = RandomFloats(static_cast<size_t>(c.cols), 2);
  Result result{ActivationMemory(rows, c.cols, forms), RandomFloats(size, 3)};
  const auto pool = MakePool(num_threads);
  EXPECT_TRUE(kernels
                  .rms_norm({.input = c.with_input ? input.data() : nullptr,
                             .residual = c.with_residual ? result.residual.data() : nullptr,
                             .weight = weight.data(),
                             .eps = 1e-5f,
                             .output = result.output.View()},
                            {pool.get()})
                  .ok());
  return result;
}

constexpr Case kCases[] = {
    {576, true, true}, {640, true, false}, {64, false, true}, {1056, true, true}};

TEST_P(RmsNormTest, EqualsTheReference) {
  for (const Case& c : kCases) {
    const Result actual = RunRmsNorm(kernels(), c, 5, Forms::kBoth, 1);
    const Result expected = RunRmsNorm(ReferenceKernels(), c, 5, Forms::kBoth, 1);
    EXPECT_TRUE(SameBits(actual.residual, expected.residual));
    // The sum of squares has relative error < cols * eps; half of it reaches the root. |output|
    // < 32.
    ExpectNear(actual.output.values, expected.output.values,
               32 * static_cast<double>(c.cols) * kFloatEpsilon);
    ExpectQuantsOfValues(actual.output);
  }
}

TEST_P(RmsNormTest, AcceptsAnyNumberOfColumnsWithoutQuants) {
  for (int64_t cols : {1, 7, 16, 33, 100}) {
    const Case c = {cols, true, true};
    ExpectNear(RunRmsNorm(kernels(), c, 3, Forms::kValues, 1).output.values,
               RunRmsNorm(ReferenceKernels(), c, 3, Forms::kValues, 1).output.values, 1e-4);
  }
}

TEST_P(RmsNormTest, GivesTheSameBitsInAnyBatchFormAndThreadCount) {
  for (const Case& c : kCases) {
    const Result all = RunRmsNorm(kernels(), c, 6, Forms::kBoth, 1);
    for (int num_threads : {2, 3}) {
      ExpectSame(RunRmsNorm(kernels(), c, 6, Forms::kBoth, num_threads).output, all.output);
    }
    const Result fewer = RunRmsNorm(kernels(), c, 2, Forms::kBoth, 1);
    EXPECT_EQ(std::memcmp(fewer.output.Row(0), all.output.Row(0), sizeof(float) * 2 * c.cols), 0);
    EXPECT_TRUE(
        SameBits(RunRmsNorm(kernels(), c, 6, Forms::kValues, 1).output.values, all.output.values));
    EXPECT_TRUE(
        SameBits(RunRmsNorm(kernels(), c, 6, Forms::kQuants, 1).output.quants, all.output.quants));
  }
}

TEST_P(RmsNormTest, WritesOverItsInput) {
  const Aligned<float> weight = RandomFloats(64, 2);
  Aligned<float> input = RandomFloats(64, 1);
  ActivationMemory out(1, 64, Forms::kValues);
  RmsNormParams params = {.input = input.data(), .weight = weight.data(), .output = out.View()};
  ASSERT_TRUE(kernels().rms_norm(params, {}).ok());
  params.output.values = input.data();
  ASSERT_TRUE(kernels().rms_norm(params, {}).ok());
  EXPECT_TRUE(SameBits(input, out.values));
}

TEST_P(RmsNormTest, QuantisesZeroTinyAndNonFiniteGroups) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Aligned<float> input(160, 1.0f);
  Aligned<float> weight = RandomFloats(160, 5);
  for (size_t i = 0; i < 32; ++i) {
    weight[i] = 0.0f;
    weight[32 + i] *= 1e-38f;  // 127 / amax is infinite
  }
  weight[70] = kInfinity;
  weight[100] = -std::numeric_limits<float>::quiet_NaN();
  ActivationMemory out(1, 160, Forms::kBoth);
  ASSERT_TRUE(
      kernels()
          .rms_norm({.input = input.data(), .weight = weight.data(), .output = out.View()}, {})
          .ok());
  ExpectQuantsOfValues(out);
  EXPECT_EQ(out.scales[0], 0);
  EXPECT_EQ(out.scales[1], 0);
  EXPECT_TRUE(std::isnan(out.scales[2]));
  EXPECT_TRUE(std::isnan(out.scales[3]));
}

TEST_P(RmsNormTest, RefusesWrongArguments) {
  Aligned<float> x(48, 1.0f);
  ActivationMemory out(1, 48, Forms::kBoth);
  RmsNormParams params = {.input = x.data(), .weight = x.data(), .output = out.View()};
  EXPECT_EQ(kernels().rms_norm(params, {}).code(), absl::StatusCode::kInvalidArgument);
  params.output = {};
  EXPECT_EQ(kernels().rms_norm(params, {}).code(), absl::StatusCode::kInvalidArgument);
  params.output = {.values = x.data(), .rows = 1, .cols = 48};
  params.weight = nullptr;
  EXPECT_EQ(kernels().rms_norm(params, {}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace llm
