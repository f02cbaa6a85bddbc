// The step budget from what the first steps took.
#include "src/engine/step_budget.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

constexpr int64_t kMs = 1'000'000;

int32_t Choose(int64_t first_ns, int64_t later_ns) {
  StepBudget budget = StepBudget::Measured(512);
  EXPECT_EQ(budget.tokens(), 64);
  budget.Note(64, first_ns);
  for (int step = 0; step < 3; ++step) budget.Note(64, later_ns);
  EXPECT_TRUE(budget.chosen());
  return budget.tokens();
}

TEST(StepBudgetTest, ChoosesTheLargestStepOfAtMostATenthOfASecond) {
  EXPECT_EQ(Choose(90 * kMs, 30 * kMs), 192);
  EXPECT_EQ(Choose(25 * kMs, 25 * kMs), 256);
}

TEST(StepBudgetTest, StaysBetween64AndTheMost) {
  EXPECT_EQ(Choose(300 * kMs, 200 * kMs), 64);
  EXPECT_EQ(Choose(900 * kMs, 1), 64);
  EXPECT_EQ(Choose(1, 1), 512);
  EXPECT_EQ(Choose(0, 0), 512);
}

TEST(StepBudgetTest, IsNotChosenBySmallSteps) {
  StepBudget budget = StepBudget::Measured(512);
  for (int step = 0; step < 10; ++step) budget.Note(63, 1);
  EXPECT_FALSE(budget.chosen());
  EXPECT_EQ(budget.tokens(), 64);
}

TEST(StepBudgetTest, AGivenOneStays) {
  StepBudget budget(100);
  budget.Note(100, 900 * kMs);
  EXPECT_EQ(budget.tokens(), 100);
}

TEST(StepBudgetTest, HasNoChoiceWhereTheMostIsSmall) {
  StepBudget budget = StepBudget::Measured(48);
  budget.Note(64, 1);
  EXPECT_EQ(budget.tokens(), 48);
  EXPECT_TRUE(budget.chosen());
}

}  // namespace
}  // namespace llm
