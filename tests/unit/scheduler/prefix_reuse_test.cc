// What a sequence finds in the prefix cache, and what it never finds.
#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

TEST_F(SchedulerTest, ReusesThePromptOfAFinishedSequence) {
  Start(32);
  Sequence* first = Add(14);
  Step(100);
  scheduler->Remove(first);
  Sequence* second = Add(14);
  const StepPlan plan = Step(100);
  EXPECT_EQ(plan.chunks[0].begin,
            13);  // three whole blocks, one token by copy, the last is computed
  ASSERT_EQ(plan.block_copies.size(), 1u);
  EXPECT_EQ(plan.block_copies[0].tokens, 1);
  EXPECT_EQ(plan.block_copies[0].destination, second->block_tables[0][3]);
  EXPECT_EQ(second->stats.num_cached_tokens, 13);
  EXPECT_EQ(scheduler->counters().cached_tokens_total, 13u);
  EXPECT_EQ(scheduler->counters().queried_tokens_total, 28u);
}

TEST_F(SchedulerTest, ComputesTheLastTokenOfAPromptThatIsWhollyCached) {
  Start(32);
  Add(8);
  Step(100);
  Add(8);
  const StepPlan plan = Step(100);
  ASSERT_EQ(plan.chunks.size(), 2u);
  EXPECT_EQ(plan.chunks[1].begin, 7);
  EXPECT_EQ(plan.chunks[1].num_logits, 1);
}

TEST_F(SchedulerTest, SharesFullBlocksOfARunningSequence) {
  Start(32);
  Sequence* first = Add(12);
  Step(100);
  Sequence* second = Add(16);
  const StepPlan plan = Step(100);
  EXPECT_EQ(plan.chunks[1].begin, 12);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(first->block_tables[0][i], second->block_tables[0][i]);
  EXPECT_NE(first->block_tables[0][3], second->block_tables[0][3]);
}

TEST_F(SchedulerTest, CopiesABlockThatDivergesInItsMiddle) {
  Start(32);
  Sequence* first = Add(12);
  Step(100);
  Sequence* second = AddPrompt({0, 1, 2, 3, 4, 5, 99, 98, 97});
  const StepPlan plan = Step(100);
  EXPECT_EQ(plan.chunks[1].begin, 6);
  ASSERT_EQ(plan.block_copies.size(), 1u);
  EXPECT_EQ(plan.block_copies[0].source, first->block_tables[0][1]);
  EXPECT_EQ(plan.block_copies[0].tokens, 2);
  EXPECT_NE(second->block_tables[0][1], first->block_tables[0][1]);
}

TEST_F(SchedulerTest, FindsNothingUnderAnotherSaltOrAdapter) {
  Start(32);
  Add(12, 0, 0, "a");
  Step(100);
  Sequence* other_salt = Add(12, 0, 0, "b");
  Sequence* same_salt = Add(12, 0, 0, "a");
  Step(100);
  EXPECT_EQ(other_salt->stats.num_cached_tokens, 0);
  EXPECT_EQ(same_salt->stats.num_cached_tokens, 11);
}

TEST_F(SchedulerTest, FindsNothingThatWasTurnedByOtherFrequencies) {
  Start(32);
  Add(12);
  Step(100);
  Sequence* longer = Add(14);
  longer->request.long_rope = true;
  Step(100);
  EXPECT_EQ(longer->stats.num_cached_tokens, 0);
  Sequence* as_long = Add(14);
  as_long->request.long_rope = true;
  Step(100);
  EXPECT_EQ(as_long->stats.num_cached_tokens, 12);
}

TEST_F(SchedulerTest, NeitherReadsNorFeedsTheCacheForARequestThatDoesNotWantIt) {
  Start(32);
  Sequence* first = Add(12);
  first->request.use_prefix_cache = false;
  Step(100);
  scheduler->Remove(first);
  EXPECT_EQ(scheduler->counters().cached_blocks_current, 0);
}

TEST_F(SchedulerTest, ForgoesTheCopyWhenBlocksDoNotSuffice) {
  Start(3);
  Sequence* first = Add(11);
  Step(100);
  scheduler->Remove(first);
  Add(11);
  const StepPlan plan = Step(100);
  EXPECT_TRUE(plan.block_copies.empty());
  EXPECT_EQ(plan.chunks[0].begin, 8);
}

TEST_F(SchedulerTest, KeepsTheWindowOfAHitWhoseCopyIsForgone) {
  Start(3, SchedulingPolicy::kFcfs, {0, 5});
  Sequence* first = Add(11);
  Step(100);
  scheduler->Remove(first);
  Add(11);
  const StepPlan plan = Step(100);
  EXPECT_TRUE(plan.block_copies.empty());
  EXPECT_EQ(plan.chunks[0].begin, 8);
}

TEST_F(SchedulerTest, NeedsOnlyTheWindowOfAWindowGroupForAHit) {
  Start(16, SchedulingPolicy::kFcfs, {0, 5});
  Sequence* first = Add(40);
  Step(100);
  Sequence* second = Add(42);
  const StepPlan plan = Step(100);
  ASSERT_EQ(plan.chunks.size(), 2u);
  EXPECT_EQ(plan.chunks[1].begin, 40);
  EXPECT_EQ(second->block_tables[1][9], first->block_tables[1][9]);
  EXPECT_EQ(second->block_tables[1][7], kNullBlock);
}

TEST_F(SchedulerTest, DoesNotPublishTheDestinationOfACopyThatFailed) {
  Start(32);
  Add(8);
  Step(100);
  Sequence* second = AddPrompt({0, 1, 2, 3, 4, 5, 99, 98});
  StepPlan plan = Plan(100);
  ASSERT_EQ(plan.block_copies.size(), 1u);
  scheduler->Rollback(plan);
  EXPECT_TRUE(scheduler->CheckInvariants().ok());
  EXPECT_EQ(scheduler->counters().cached_blocks_current, 0);
  scheduler->Remove(second);
  EXPECT_EQ(scheduler->counters().cached_blocks_current, 0);
}

}  // namespace
}  // namespace llm
