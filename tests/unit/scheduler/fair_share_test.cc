// Prompts that are computed side by side.
#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

class FairShareTest : public SchedulerTest {
 protected:
  static int32_t LengthOf(const StepPlan& plan, const Sequence* sequence) {
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (chunk.sequence == sequence) return chunk.length;
    }
    return 0;
  }
};

TEST_F(FairShareTest, AShortPromptStartsWhileALongOneIsComputed) {
  Start(200);
  Sequence* document = Add(200);
  Step(64);
  Sequence* question = Add(10, 5000);
  const StepPlan plan = Step(64);
  EXPECT_EQ(LengthOf(plan, question), 10);
  EXPECT_EQ(LengthOf(plan, document), 32);
  EXPECT_EQ(question->num_generated_tokens(), 1);
}

TEST_F(FairShareTest, LongPromptsGetEqualSharesAndWhatShorterOnesLeave) {
  Start(400);
  Sequence* first = Add(150);
  Sequence* second = Add(160, 5000);
  Step(100);  // the first alone: nobody else may start before the budget is spent
  Step(100);
  ASSERT_EQ(first->num_generated_tokens(), 1);
  ASSERT_EQ(second->num_computed_tokens, 50);
  Sequence* third = Add(150, 10'000);
  Step(101);
  Sequence* question = Add(12, 15'000);
  const StepPlan plan = Step(1 + 60);
  EXPECT_EQ(LengthOf(plan, second), 20);
  EXPECT_EQ(LengthOf(plan, third), 20);
  EXPECT_EQ(LengthOf(plan, question), 12);
}

TEST_F(FairShareTest, WhoCannotStartIsKeptNoShare) {
  Start(64, SchedulingPolicy::kFcfs, {0}, /*max_sequences=*/1);
  Sequence* document = Add(200);
  Step(40);
  Add(10, 5000);
  EXPECT_EQ(LengthOf(Step(40), document), 40);
}

TEST_F(FairShareTest, ABudgetOfOneTileGoesToTheMostImportant) {
  Start(200, SchedulingPolicy::kPriority);
  Sequence* low = Add(100, 0, 5);
  Sequence* high = Add(120, 5000, 1);
  Step(32);
  ASSERT_EQ(low->status, SequenceStatus::kWaiting);
  Step(200);
  low = Add(100, 10'000, 5);
  high = Add(120, 15'000, 1);
  Step(64);
  ASSERT_EQ(high->status, SequenceStatus::kRunning);
  const StepPlan plan = Step(2 + 9);  // two decodes
  EXPECT_EQ(LengthOf(plan, high), 9);
  EXPECT_EQ(LengthOf(plan, low), 0);
}

TEST_F(FairShareTest, PromptsGetAheadInStepsThatHaveNoRoomForAllDecodes) {
  Start(400, SchedulingPolicy::kFcfs, {0}, 16);
  for (int i = 0; i < 12; ++i) Add(2, 1000 * i);
  Step(64);
  Sequence* document = Add(100, 50'000);
  for (int i = 0; i < 17; ++i) Step(12);  // of six tokens each
  EXPECT_EQ(document->num_generated_tokens(), 1);
}

TEST_F(FairShareTest, NoneStarvesBesideAStreamOfShorterOnes) {
  Start(250, SchedulingPolicy::kFcfs, {0}, 32);
  Sequence* document = Add(200);
  int steps = 0;
  while (document->num_generated_tokens() == 0) {
    ASSERT_LT(++steps, 60);
    Sequence* question = Add(10, 1000 * steps);
    Step(64);
    if (question->num_generated_tokens() > 0) scheduler->Remove(question);
  }
}

}  // namespace
}  // namespace llm
