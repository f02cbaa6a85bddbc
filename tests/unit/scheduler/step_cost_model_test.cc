// The cost model against steps whose cost is known.
#include "src/scheduler/step_cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "src/scheduler/layer_windows.h"

namespace llm {
namespace {

// A machine: what a step of its takes, in ns.
double TrueNs(const StepWork& work) {
  return 2e6 + 5e4 * work.decode_rows + 3e5 * work.prefill_tokens + 30 * work.decode_keys +
         12 * work.prefill_pairs;
}

class CostModelTest : public testing::Test {
 protected:
  StepWork Decodes(int rows, int context) const {
    StepWork work;
    for (int i = 0; i < rows; ++i) work = work + full_.Chunk(context, 1);
    return work;
  }
  StepWork Prefill(int begin, int length) const { return full_.Chunk(begin, length); }
  void Note(const StepWork& work, double factor = 1) {
    model_.Note(work, static_cast<int64_t>(TrueNs(work) * factor));
  }
  double Off(const StepWork& work) const {
    return std::abs(model_.PredictNs(work) / TrueNs(work) - 1);
  }
  // Some 200 steps of mixed traffic, each `factor(step)` times as long as it should be.
  template <typename Factor>
  void RunTraffic(Factor factor) {
    std::mt19937 random(7);
    const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % unsigned(most)); };
    for (int step = 0; step < 200; ++step) {
      StepWork work = Decodes(up_to(24), up_to(2000));
      if (step % 3 != 0) work = work + Prefill(up_to(3000), 1 + up_to(255));
      Note(work, factor(step));
    }
  }

  const LayerWindows full_{{{.window = 0, .layers = {0, 1}}}};
  StepCostModel model_;
};

TEST_F(CostModelTest, FindsTheCoefficientsOfALinearMachine) {
  RunTraffic([](int) { return 1.0; });
  EXPECT_TRUE(model_.fitted());
  EXPECT_LT(Off(Decodes(1, 100)), 0.01);
  EXPECT_LT(Off(Decodes(32, 4000)), 0.01);
  EXPECT_LT(Off(Prefill(0, 512)), 0.01);
  EXPECT_LT(Off(Decodes(8, 500) + Prefill(7000, 512)), 0.02);
  EXPECT_LT(model_.error().p50, 0.01);
}

TEST_F(CostModelTest, IsNotMisledByOneStepInTenThatLostItsCore) {
  RunTraffic([](int step) { return step % 10 == 5 ? 8.0 : 1.0; });
  EXPECT_LT(Off(Decodes(4, 1000)), 0.05);
  EXPECT_LT(Off(Prefill(1000, 256)), 0.05);
  EXPECT_GT(model_.error().p95, 0.5) << "the lost steps were not predicted, and it says so";
}

TEST_F(CostModelTest, FollowsAMachineThatBecomesSlower) {
  RunTraffic([](int) { return 1.0; });
  RunTraffic([](int) { return 2.0; });
  EXPECT_NEAR(model_.PredictNs(Prefill(0, 256)) / TrueNs(Prefill(0, 256)), 2, 0.04);
}

TEST_F(CostModelTest, DoesNotForgetPrefillsWhileOnlyDecodesRun) {
  RunTraffic([](int) { return 1.0; });
  for (int step = 0; step < 1000; ++step) Note(Decodes(4, 500 + step));
  EXPECT_LT(Off(Prefill(0, 512)), 0.02);
  EXPECT_LT(Off(Decodes(4, 1500)), 0.01);
}

TEST_F(CostModelTest, IsNotFittedBeforeAPrefillWasSeen) {
  for (int step = 0; step < 10; ++step) Note(Decodes(2, 100));
  EXPECT_FALSE(model_.fitted());
  EXPECT_LT(Off(Decodes(2, 100)), 0.01);
}

TEST_F(CostModelTest, LeavesOutTheFirstStepWhichWarmsCaches) {
  Note(Prefill(0, 64), 20);
  EXPECT_FALSE(model_.fitted());
  Note(Prefill(64, 64));
  EXPECT_LT(Off(Prefill(64, 64)), 0.01);
}

// Fixed cost and tokens cannot be told apart yet: a chunk must not look nearly free.
TEST_F(CostModelTest, TakesEqualPrefillsForPricedByTheToken) {
  for (int step = 0; step < 3; ++step) Note(Prefill(0, 64));
  EXPECT_GT(model_.PredictNs(Prefill(0, 512)), 6 * TrueNs(Prefill(0, 64)));
}

TEST_F(CostModelTest, GivesNothingBelowZeroWhateverItIsFed) {
  std::mt19937 random(11);
  for (int step = 0; step < 500; ++step) {
    const StepWork work = random() % 2 != 0
                              ? Decodes(int(random() % 9), int(random() % 5000))
                              : Prefill(int(random() % 5000), 1 + int(random() % 600));
    model_.Note(work, static_cast<int64_t>(random() % 5 == 0 ? 0 : random()));
    const StepCostModel::Coefficients& c = model_.coefficients();
    for (const double value :
         {c.fixed, c.decode_row, c.prefill_token, c.decode_key, c.prefill_pair}) {
      EXPECT_GE(value, 0);
      EXPECT_TRUE(std::isfinite(value));
    }
  }
}

TEST(LayerWindowsTest, CountsEachPairOnceAndOnlyInsideWindows) {
  const LayerWindows windows{{{.window = 0, .layers = {0}}, {.window = 4, .layers = {1, 2, 3}}}};
  for (int begin = 0; begin < 9; ++begin) {
    for (int length = 1; length < 9; ++length) {
      double pairs = 0;
      for (int query = begin; query < begin + length; ++query) {
        pairs += 0.25 * (query + 1) + 0.75 * std::min(query + 1, 4);
      }
      const StepWork work = windows.Chunk(begin, length);
      EXPECT_DOUBLE_EQ(length == 1 ? work.decode_keys : work.prefill_pairs, pairs);
      EXPECT_DOUBLE_EQ(work.decode_rows + work.prefill_tokens, length);
    }
  }
}

}  // namespace
}  // namespace llm
