// row_stats: known rows, ties, NaN and infinities, every backend against the reference,
// independence of the batch.
#include <limits>

#include "tests/kernels/kernel_test_util.h"

namespace llm {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class RowStatsTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, RowStatsTest, testing::ValuesIn(AvailableKernels()),
                         BackendName);

struct Stats {
  Aligned<int32_t> argmax;
  Aligned<float> max;
  Aligned<float> log_sum_exp;
};

Stats RunRowStats(const KernelTable& kernels, const Aligned<float>& logits, int64_t rows,
                  int num_threads = 1) {
  const size_t n = static_cast<size_t>(rows);
  Stats stats{Aligned<int32_t>(n, -7), Aligned<float>(n), Aligned<float>(n)};
  const auto pool = MakePool(num_threads);
  EXPECT_TRUE(kernels
                  .row_stats({.logits = logits.data(),
                              .rows = rows,
                              .cols = static_cast<int64_t>(logits.size()) / rows,
                              .argmax = stats.argmax.data(),
                              .max = stats.max.data(),
                              .log_sum_exp = stats.log_sum_exp.data()},
                             {pool.get()})
                  .ok());
  return stats;
}

TEST_P(RowStatsTest, KnowsHandComputedRows) {
  const Stats stats = RunRowStats(kernels(), {0.5f, -1, 3, 2.25f, 99, 99, 100, -kInfinity}, 2);
  EXPECT_EQ(stats.argmax[0], 2);
  EXPECT_EQ(stats.max[0], 3);
  EXPECT_NEAR(stats.log_sum_exp[0], 3.452836609, 1e-6);
  EXPECT_EQ(stats.argmax[1], 2);
  EXPECT_NEAR(stats.log_sum_exp[1], 100.551444714, 1e-5);
}

TEST_P(RowStatsTest, TiesGoToTheLowestIndex) {
  for (size_t cols : {5u, 100u, 9000u}) {
    for (size_t first : {size_t{0}, cols / 3, cols - 2}) {
      Aligned<float> logits = RandomFloats(cols, 4);
      logits[first] = logits[cols - 1] = 50;
      for (size_t i = first + 1; i < cols; i += 7) logits[i] = 50;
      EXPECT_EQ(RunRowStats(kernels(), logits, 1).argmax[0], static_cast<int32_t>(first));
    }
  }
  EXPECT_EQ(RunRowStats(kernels(), Aligned<float>(4200, 0.0f), 1).argmax[0], 0);
  EXPECT_EQ(RunRowStats(kernels(), {0.0f, -1.0f, -0.0f, 0.0f}, 1).argmax[0], 0);
}

TEST_P(RowStatsTest, ReportsNanAndRowsWithoutFiniteValues) {
  for (size_t cols : {1u, 40u, 4097u, 9001u}) {
    Aligned<float> logits = RandomFloats(cols, 4);
    logits[cols - 1] = kNan;
    Stats stats = RunRowStats(kernels(), logits, 1);
    EXPECT_EQ(stats.argmax[0], -1);
    EXPECT_TRUE(std::isnan(stats.max[0]));
    EXPECT_TRUE(std::isnan(stats.log_sum_exp[0]));
    logits[0] = kNan;
    EXPECT_EQ(RunRowStats(kernels(), logits, 1).argmax[0], -1);
    EXPECT_EQ(RunRowStats(kernels(), Aligned<float>(cols, -kInfinity), 1).argmax[0], -1);
    EXPECT_EQ(RunRowStats(kernels(), Aligned<float>(cols, kInfinity), 1).argmax[0], -1);
  }
}

TEST_P(RowStatsTest, AllowsInfinitiesBesideFiniteValues) {
  Aligned<float> logits(9000, -kInfinity);
  logits[5000] = 1.5f;
  Stats stats = RunRowStats(kernels(), logits, 1);
  EXPECT_EQ(stats.argmax[0], 5000);
  EXPECT_EQ(stats.log_sum_exp[0], 1.5f);
  logits[6000] = kInfinity;
  stats = RunRowStats(kernels(), logits, 1);
  EXPECT_EQ(stats.argmax[0], 6000);
  EXPECT_EQ(stats.max[0], kInfinity);
  EXPECT_EQ(stats.log_sum_exp[0], kInfinity);
}

TEST_P(RowStatsTest, EqualsTheReference) {
  for (size_t cols : {1u, 15u, 16u, 4096u, 4097u, 49152u}) {
    const Aligned<float> logits = RandomFloats(3 * cols, 9, 5.0f);
    const Stats actual = RunRowStats(kernels(), logits, 3);
    const Stats expected = RunRowStats(ReferenceKernels(), logits, 3);
    EXPECT_TRUE(SameBits(actual.argmax, expected.argmax));
    EXPECT_TRUE(SameBits(actual.max, expected.max));
    // The sum's relative error, below cols * eps, is the absolute error of its logarithm.
    ExpectNear(actual.log_sum_exp, expected.log_sum_exp,
               static_cast<double>(cols + 64) * kFloatEpsilon);
  }
}

TEST_P(RowStatsTest, GivesTheSameBitsInAnyBatchAndThreadCount) {
  constexpr size_t kCols = 10000;
  const Aligned<float> logits = RandomFloats(4 * kCols, 9, 5.0f);
  const Stats all = RunRowStats(kernels(), logits, 4);
  for (int num_threads : {2, 3}) {
    EXPECT_TRUE(
        SameBits(RunRowStats(kernels(), logits, 4, num_threads).log_sum_exp, all.log_sum_exp));
  }
  for (size_t row = 0; row < 4; ++row) {
    const Aligned<float> one(logits.begin() + static_cast<int64_t>(row * kCols),
                             logits.begin() + static_cast<int64_t>((row + 1) * kCols));
    EXPECT_EQ(RunRowStats(kernels(), one, 1, 3).log_sum_exp[0], all.log_sum_exp[row]);
  }
}

}  // namespace
}  // namespace llm
