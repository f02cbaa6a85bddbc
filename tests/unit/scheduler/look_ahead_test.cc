// Blocks for the step after the next: when all get them, and when nobody does.
#include <vector>

#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

class LookAheadTest : public SchedulerTest {
 protected:
  static constexpr StepLimit kLooksAhead = {.max_tokens = 64, .look_ahead = true};

  Sequence* AddOf(int32_t size, int32_t max_new_tokens, int32_t first = 0) {
    Sequence* sequence = Add(size, first);
    sequence->request.stop.max_new_tokens = max_new_tokens;
    return sequence;
  }
  static size_t NumBlocks(const Sequence& sequence, size_t group = 0) {
    return sequence.block_tables[group].size();
  }
};

TEST_F(LookAheadTest, AStepThatFillsABlockTakesTheNextOneToo) {
  Start(16, SchedulingPolicy::kFcfs, {0, 8});
  Sequence* sequence = AddOf(4, 10);
  StepPlan plan = Plan(kLooksAhead);
  EXPECT_TRUE(plan.looks_ahead);
  EXPECT_EQ(NumBlocks(*sequence, 0), 2u);
  EXPECT_EQ(NumBlocks(*sequence, 1), 2u);
  Commit(plan);
  plan = Plan(kLooksAhead);
  EXPECT_TRUE(plan.looks_ahead);
  EXPECT_EQ(NumBlocks(*sequence), 2u);
  Commit(plan);
}

TEST_F(LookAheadTest, NobodyIsLookedAheadForUnasked) {
  Start(16);
  Sequence* sequence = AddOf(4, 10);
  EXPECT_FALSE(Step(64).looks_ahead);
  EXPECT_EQ(NumBlocks(*sequence), 1u);
}

TEST_F(LookAheadTest, WhatAFailedStepTookGoesBack) {
  Start(16);
  Sequence* sequence = AddOf(6, 10);
  Step(64);
  sequence->tokens.push_back(1);  // 8 tokens: the step fills the second block
  const size_t before = NumBlocks(*sequence);
  const StepPlan plan = Plan(kLooksAhead);
  EXPECT_EQ(NumBlocks(*sequence), before + 1);
  scheduler->Rollback(plan);
  EXPECT_EQ(NumBlocks(*sequence), before);
  EXPECT_TRUE(scheduler->CheckInvariants().ok());
}

TEST_F(LookAheadTest, WhoeverEndsWithTheStepNeedsNoMore) {
  Start(16);
  Sequence* ends = AddOf(4, 1);
  EXPECT_FALSE(Plan(kLooksAhead).looks_ahead);  // nothing would come after it
  EXPECT_EQ(NumBlocks(*ends), 1u);
}

TEST_F(LookAheadTest, OthersGoOnPastOneThatEnds) {
  Start(16);
  Sequence* ends = AddOf(4, 1);
  Sequence* goes_on = AddOf(4, 5, 100);
  EXPECT_TRUE(Plan(kLooksAhead).looks_ahead);
  EXPECT_EQ(NumBlocks(*ends), 1u);
  EXPECT_EQ(NumBlocks(*goes_on), 2u);
}

TEST_F(LookAheadTest, BlocksAreTakenForAllOrForNone) {
  Start(3);
  Sequence* first = AddOf(2, 2);
  Sequence* second = AddOf(2, 2, 100);
  Step(64);
  first->request.stop.max_new_tokens = second->request.stop.max_new_tokens = 20;
  EXPECT_TRUE(Step(kLooksAhead).looks_ahead);
  const StepPlan plan = Plan(kLooksAhead);  // both have filled their block, and one is left
  ASSERT_EQ(plan.chunks.size(), 2u);
  EXPECT_FALSE(plan.looks_ahead);
  EXPECT_EQ(NumBlocks(*first) + NumBlocks(*second), 2u);
}

TEST_F(LookAheadTest, SomebodyWhoFindsNoPlaceWaitsForNoStepButThatBehindAnEnd) {
  Start(32, SchedulingPolicy::kFcfs, {0}, /*max_sequences=*/2);
  Sequence* ends = AddOf(4, 10);
  AddOf(4, 10, 100);
  Sequence* waits = AddOf(4, 10, 200);
  EXPECT_TRUE(Step(kLooksAhead).looks_ahead);
  scheduler->Remove(ends);
  // The step that has begun; the one behind it is the waiting one's.
  const StepPlan plan = Step({.max_tokens = 64, .decodes_only = true, .look_ahead = true});
  EXPECT_EQ(plan.chunks.size(), 1u);
  EXPECT_FALSE(plan.looks_ahead);
  Step(kLooksAhead);
  EXPECT_EQ(waits->status, SequenceStatus::kRunning);
}

// A choice whose sibling computes the prompt in this step takes it over in the next one.
TEST_F(LookAheadTest, ChoicesThatWaitForAPromptAreNotMadeToWaitForAStepMore) {
  Start(32);
  std::vector<Sequence*> choices;
  for (int i = 0; i < 2; ++i) {
    choices.push_back(AddOf(6, 10));
    choices.back()->siblings = &choices;
  }
  EXPECT_FALSE(Step(kLooksAhead).looks_ahead);
  EXPECT_EQ(Step(kLooksAhead).chunks.size(), 2u);
}

// Full pools are no less full in steps that admit nobody anyway.
TEST_F(LookAheadTest, AForecastKnowsThatThereIsNoRoomAlsoBehindAStepOfDecodesOnly) {
  Start(4);
  AddOf(8, 6);
  Step(64);
  AddOf(8, 6, 100);  // no room beside the first
  Request request;
  request.prompt = {7, 8, 9};
  const ForecastQuery query = {
      .request = &request, .cost = {.fixed = 1000, .decode_row = 100}, .max_step_tokens = 64};
  EXPECT_TRUE(Step(kLooksAhead).looks_ahead);
  const int64_t before_ns = scheduler->Forecast(query).total_ns;
  EXPECT_GT(before_ns, 4 * 1100);  // behind the ends of both
  Step({.max_tokens = 64, .decodes_only = true, .look_ahead = true});
  EXPECT_GT(scheduler->Forecast(query).total_ns, before_ns - 2 * 1100);
}

TEST_F(LookAheadTest, SomebodyWhoCouldStartComesFirst) {
  Start(32);
  AddOf(4, 10);
  Step(64);
  AddOf(4, 10, 100);
  EXPECT_FALSE(Step({.max_tokens = 64, .decodes_only = true, .look_ahead = true}).looks_ahead);
}

TEST_F(LookAheadTest, AnUnfinishedPromptIsNotLookedPast) {
  Start(32);
  AddOf(20, 10);
  EXPECT_FALSE(Plan({.max_tokens = 8, .look_ahead = true}).looks_ahead);
}

TEST_F(LookAheadTest, AForecastKnowsOfTheStepThatHasBegun) {
  Start(32);
  AddOf(4, 10);
  Request request;
  request.prompt = {7, 8, 9};
  const ForecastQuery query = {
      .request = &request, .cost = {.fixed = 1000, .decode_row = 100}, .max_step_tokens = 64};
  Step(64);
  const int64_t plain_ns = scheduler->Forecast(query).total_ns;
  Step(kLooksAhead);
  EXPECT_EQ(scheduler->Forecast(query).total_ns, plain_ns + 1100);
  Step(64);
  EXPECT_EQ(scheduler->Forecast(query).total_ns, plain_ns);
}

TEST_F(LookAheadTest, AStepOfDecodesOnlyLeavesPromptsForTheNextOne) {
  Start(32);
  Sequence* decodes = AddOf(4, 10);
  Step(64);
  AddOf(20, 10, 100);
  StepPlan plan = Step({.max_tokens = 64, .decodes_only = true});
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_EQ(plan.chunks[0].sequence, decodes);
  plan = Step(16);  // a part of the prompt
  EXPECT_EQ(plan.chunks.size(), 2u);
  plan = Step({.max_tokens = 16, .decodes_only = true});
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_EQ(plan.chunks[0].sequence, decodes);
}

TEST_F(LookAheadTest, AStepOfDecodesOnlyIsEmptyWhereNobodyDecodes) {
  Start(32);
  AddOf(20, 10);
  EXPECT_TRUE(Plan({.max_tokens = 64, .decodes_only = true}).chunks.empty());
  EXPECT_EQ(Plan(64).chunks.size(), 1u);
}

}  // namespace
}  // namespace llm
