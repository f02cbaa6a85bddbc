// Who gives up its blocks, and how it comes back.
#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

TEST_F(SchedulerTest, PreemptsTheNewestSequenceWhenBlocksRunOut) {
  Start(8);
  Sequence* first = Add(4);
  Sequence* second = Add(4, 100);
  while (second->stats.num_preemptions == 0) Step(100);
  EXPECT_EQ(first->stats.num_preemptions, 0);
  EXPECT_EQ(second->status, SequenceStatus::kWaiting);
  EXPECT_EQ(second->num_computed_tokens, 0);
  EXPECT_TRUE(second->block_tables[0].empty());
  EXPECT_EQ(scheduler->counters().preemptions_total, 1u);
}

TEST_F(SchedulerTest, PreemptsTheOneThatLosesLeastWork) {
  Start(10);
  Sequence* first = Add(4);
  Sequence* long_one = Add(9, 100);
  Sequence* short_one = Add(3, 200);
  Sequence* victim = nullptr;
  while (victim == nullptr) {
    Step(100);
    for (Sequence* sequence : {first, long_one, short_one}) {
      if (sequence->stats.num_preemptions > 0) victim = sequence;
    }
  }
  EXPECT_EQ(victim, short_one);
}

TEST_F(SchedulerTest, NeverPreemptsAMoreImportantSequence) {
  Start(8, SchedulingPolicy::kPriority);
  Sequence* unimportant = Add(13, 0, 7);
  Step(100);
  Sequence* important = Add(2, 100, 1);
  while (unimportant->stats.num_preemptions == 0) Step(100);
  EXPECT_EQ(important->stats.num_preemptions, 0);
  EXPECT_EQ(important->status, SequenceStatus::kRunning);
}

TEST_F(SchedulerTest, FindsThePrefixOfAPreemptedSequenceAgain) {
  Start(8);
  Sequence* first = Add(4);
  Sequence* second = Add(4, 100);
  while (second->stats.num_preemptions == 0) Step(100);
  const int32_t computed = second->max_computed_tokens;
  scheduler->Remove(first);
  const StepPlan plan = Step(100);
  ASSERT_EQ(plan.chunks.size(), 1u);
  // Its tail block was what the other one needed; the head is still there.
  EXPECT_EQ(plan.chunks[0].begin, computed - kBlockSize);
  EXPECT_EQ(scheduler->counters().rehit_tokens_total, static_cast<uint64_t>(computed - kBlockSize));
  EXPECT_EQ(second->stats.num_recomputed_tokens, kBlockSize);
  EXPECT_EQ(second->stats.num_cached_tokens, 0);
}

TEST_F(SchedulerTest, CountsWhatItComputesAgain) {
  Start(8);
  Sequence* first = Add(4);
  Sequence* second = Add(4, 100);
  while (second->stats.num_preemptions == 0) Step(100);
  const int32_t computed = second->max_computed_tokens;
  scheduler->Remove(first);
  scheduler->FlushPrefixCache();
  Step(100);
  EXPECT_EQ(second->stats.num_recomputed_tokens, computed);
  EXPECT_EQ(scheduler->counters().recomputed_tokens_total, static_cast<uint64_t>(computed));
}

TEST_F(SchedulerTest, ShrinksAChunkToTheBlocksThatAreLeft) {
  Start(4, SchedulingPolicy::kFcfs, {8});
  Sequence* sequence = Add(64);
  EXPECT_EQ(Step(100).chunks[0].length, 16);
  while (sequence->num_generated_tokens() == 0) {
    const StepPlan plan = Step(100);
    ASSERT_EQ(plan.chunks.size(), 1u);
    EXPECT_EQ(plan.chunks[0].length, 8);
  }
  EXPECT_EQ(sequence->stats.num_preemptions, 0);
}

}  // namespace
}  // namespace llm
