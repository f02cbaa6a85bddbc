// Siblings, the choices of one request: who computes their prompt, who waits, and what is shared.
#include <algorithm>

#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

class SharingTest : public SchedulerTest {
 protected:
  // `count` siblings without prefix cache, with the same prompt of `size` tokens.
  std::vector<Sequence*> AddSiblings(int count, int32_t size) {
    for (int i = 0; i < count; ++i) {
      siblings_.push_back(Add(size));
      siblings_.back()->request.use_prefix_cache = false;
      siblings_.back()->siblings = &siblings_;
    }
    return siblings_;
  }
  void Remove(Sequence* sequence) {
    scheduler->Remove(sequence);
    siblings_.erase(std::find(siblings_.begin(), siblings_.end(), sequence));
  }

 private:
  std::vector<Sequence*> siblings_;
};

TEST_F(SharingTest, SiblingsWaitForThePromptAndThenComputeItsLastTokenAlone) {
  Start(64);
  const std::vector<Sequence*> siblings = AddSiblings(3, 10);
  EXPECT_EQ(Step(6).chunks.size(), 1u);
  EXPECT_EQ(Step(6).chunks.size(), 1u) << "the prompt ends in this step";
  const StepPlan plan = Step(6);
  ASSERT_EQ(plan.chunks.size(), 3u);
  for (const size_t i : {1u, 2u}) {
    EXPECT_EQ(plan.chunks[i].sequence, siblings[i]);
    EXPECT_EQ(plan.chunks[i].begin, 9);
    EXPECT_EQ(plan.chunks[i].length, 1);
    EXPECT_EQ(plan.chunks[i].num_logits, 1);
  }
  ASSERT_EQ(plan.block_copies.size(), 2u) << "the partly filled block";
  EXPECT_EQ(plan.block_copies[0].tokens, 1);
  EXPECT_EQ(scheduler->counters().held_blocks_current, 2 + 3) << "two whole blocks are shared";
}

TEST_F(SharingTest, AWaitingSiblingKeepsNobodyElseFromBeingAdmitted) {
  Start(64);
  AddSiblings(2, 20);
  Sequence* other = Add(3, 100);
  Step(8);
  const StepPlan plan = Step(16);
  ASSERT_EQ(plan.chunks.size(), 2u);
  EXPECT_EQ(plan.chunks[1].sequence, other);
}

TEST_F(SharingTest, WholeBlocksNeedNoCopy) {
  Start(64);
  AddSiblings(2, 9);
  Step(16);
  EXPECT_TRUE(Step(16).block_copies.empty());
}

TEST_F(SharingTest, ARolledBackStepTakesTheSharedBlocksBack) {
  Start(64);
  const std::vector<Sequence*> siblings = AddSiblings(2, 10);
  Step(16);
  const int32_t held = scheduler->counters().held_blocks_current;
  scheduler->Rollback(Plan(16));
  EXPECT_TRUE(scheduler->CheckInvariants().ok()) << scheduler->CheckInvariants();
  EXPECT_EQ(scheduler->counters().held_blocks_current, held);
  EXPECT_EQ(siblings[1]->status, SequenceStatus::kWaiting);
  EXPECT_EQ(Step(16).chunks[1].begin, 9) << "and gives them again";
}

TEST_F(SharingTest, AnySiblingThatRunsShares) {
  Start(64, SchedulingPolicy::kFcfs, {0}, /*max_sequences=*/2);
  const std::vector<Sequence*> siblings = AddSiblings(3, 10);
  Step(16);
  Step(16);
  Remove(siblings[0]);
  const StepPlan plan = Step(16);
  ASSERT_EQ(plan.chunks.size(), 2u);
  EXPECT_EQ(plan.chunks[1].sequence, siblings[2]);
  EXPECT_EQ(plan.chunks[1].begin, 9);
}

TEST_F(SharingTest, WhereNoneRunsThePromptIsComputedAgain) {
  Start(64, SchedulingPolicy::kFcfs, {0}, /*max_sequences=*/1);
  const std::vector<Sequence*> siblings = AddSiblings(2, 10);
  Step(16);
  Remove(siblings[0]);
  const StepPlan plan = Step(16);
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_EQ(plan.chunks[0].sequence, siblings[1]);
  EXPECT_EQ(plan.chunks[0].length, 10);
}

TEST_F(SharingTest, AWindowThatWouldMovePastTheSharedPromptWaitsForTheSiblings) {
  Start(64, SchedulingPolicy::kFcfs, {0, 6});
  AddSiblings(3, 10);  // at 10 tokens the first block is behind the window, at 9 it is not
  EXPECT_EQ(Step(16).num_tokens, 9);
  const StepPlan plan = Step(16);
  EXPECT_EQ(plan.num_tokens, 3);
  EXPECT_EQ(plan.chunks.size(), 3u);
}

}  // namespace
}  // namespace llm
