// The order of a plan, its budget, admission, and what a failed step leaves behind.
#include "src/scheduler/scheduler.h"

#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

TEST_F(SchedulerTest, WhoIsTakenOutForAWhileComesBackToItsPlace) {
  Start(16, SchedulingPolicy::kFcfs, {0}, /*max_sequences=*/1);
  Sequence* first = Add(4);
  Sequence* second = Add(4, 1000);
  Step(64);
  scheduler->Remove(first);
  scheduler->Add(first);
  Step(64);
  EXPECT_EQ(first->status, SequenceStatus::kRunning);
  EXPECT_EQ(second->status, SequenceStatus::kWaiting);
}

TEST_F(SchedulerTest, PlansNothingWithoutWork) {
  Start(8);
  EXPECT_TRUE(Plan(10).chunks.empty());
}

TEST_F(SchedulerTest, CutsAPromptIntoChunksWithinTheBudget) {
  Start(16);
  Sequence* sequence = Add(10);
  for (int32_t begin : {0, 4, 8}) {
    const StepPlan plan = Step(4);
    ASSERT_EQ(plan.chunks.size(), 1u);
    EXPECT_EQ(plan.chunks[0].begin, begin);
    EXPECT_EQ(plan.chunks[0].length, begin == 8 ? 2 : 4);
    EXPECT_EQ(plan.chunks[0].num_logits, begin == 8 ? 1 : 0);
  }
  EXPECT_EQ(sequence->num_computed_tokens, 10);
  EXPECT_EQ(sequence->status, SequenceStatus::kRunning);
}

TEST_F(SchedulerTest, PlansDecodesBeforePrefillChunksBeforeAdmissions) {
  Start(64);
  Sequence* prefill = Add(12);
  Step(6);
  Sequence* decode = Add(2, 100);
  Step(8);  // the prefill ends, the other one becomes a decode
  Sequence* late = Add(20, 200);
  Sequence* last = Add(3, 300);
  EXPECT_EQ(prefill->num_generated_tokens(), 1);
  const StepPlan first = Step(10);
  ASSERT_EQ(first.chunks.size(), 3u);
  EXPECT_EQ(first.chunks[0].sequence, prefill);
  EXPECT_EQ(first.chunks[1].sequence, decode);
  EXPECT_EQ(first.chunks[2].sequence, late);
  EXPECT_EQ(first.chunks[2].length, 8);
  const StepPlan second = Step(16);
  ASSERT_EQ(second.chunks.size(), 4u);
  EXPECT_EQ(second.chunks[2].sequence, late);
  EXPECT_EQ(second.chunks[3].sequence, last);
  EXPECT_EQ(second.chunks[3].length, 2);
  EXPECT_EQ(second.num_tokens, 16);
}

TEST_F(SchedulerTest, RunsNoMoreSequencesThanAllowed) {
  Start(64, SchedulingPolicy::kFcfs, {0}, /*max_sequences=*/2);
  for (int32_t i = 0; i < 3; ++i) Add(2, 10 * i);
  EXPECT_EQ(Step(100).chunks.size(), 2u);
  EXPECT_EQ(scheduler->Waiting().size(), 1u);
}

TEST_F(SchedulerTest, AdmitsByPriorityAndThenByArrival) {
  Start(64, SchedulingPolicy::kPriority);
  Sequence* low = Add(2, 0, 5);
  Sequence* first = Add(2, 10, -1);
  Sequence* second = Add(2, 20, -1);
  const StepPlan plan = Step(100);
  ASSERT_EQ(plan.chunks.size(), 3u);
  EXPECT_EQ(plan.chunks[0].sequence, first);
  EXPECT_EQ(plan.chunks[1].sequence, second);
  EXPECT_EQ(plan.chunks[2].sequence, low);
}

TEST_F(SchedulerTest, AStepOfPriorityIsWorthTenSecondsOfWaiting) {
  Start(64, SchedulingPolicy::kPriority);
  constexpr int64_t kSecond = 1'000'000'000;
  const auto arrives = [this](int64_t arrival_ns, int32_t priority) {
    return Add(2, 0, priority, "", arrival_ns);
  };
  Sequence* old = arrives(0, 2);
  Sequence* early = arrives(19 * kSecond, 0);
  Sequence* late = arrives(21 * kSecond, 0);
  Sequence* least = arrives(0, INT32_MAX);
  Sequence* most = arrives(INT64_MAX, INT32_MIN);
  const StepPlan plan = Step(100);
  ASSERT_EQ(plan.chunks.size(), 5u);
  EXPECT_EQ(plan.chunks[0].sequence, most);
  EXPECT_EQ(plan.chunks[1].sequence, early);
  EXPECT_EQ(plan.chunks[2].sequence, old);
  EXPECT_EQ(plan.chunks[3].sequence, late);
  EXPECT_EQ(plan.chunks[4].sequence, least);
}

TEST_F(SchedulerTest, TheEarliestDeadlineGoesFirstAndNoneIsOneOfTenSeconds) {
  Start(64, SchedulingPolicy::kDeadline);
  constexpr int64_t kSecond = 1'000'000'000;
  Sequence* none = Add(2, 0);
  Sequence* late = Add(2, 10, 0, "", 0, 11 * kSecond);
  Sequence* early = Add(2, 20, 0, "", 0, 9 * kSecond);
  const StepPlan plan = Step(100);
  ASSERT_EQ(plan.chunks.size(), 3u);
  EXPECT_EQ(plan.chunks[0].sequence, early);
  EXPECT_EQ(plan.chunks[1].sequence, none);
  EXPECT_EQ(plan.chunks[2].sequence, late);
}

TEST_F(SchedulerTest, IgnoresPrioritiesWhenFirstComeIsFirstServed) {
  Start(64);
  Sequence* first = Add(2, 0, 5);
  Add(2, 10, -1);
  EXPECT_EQ(Step(100).chunks[0].sequence, first);
}

TEST_F(SchedulerTest, KeepsALaterRequestWaitingWhileBlocksAreShort) {
  Start(6);
  Sequence* first = Add(12);
  Sequence* second = Add(12, 100);
  EXPECT_EQ(Step(100).chunks.size(), 1u);
  EXPECT_EQ(second->status, SequenceStatus::kWaiting);
  scheduler->Remove(first);
  EXPECT_EQ(Step(100).chunks[0].sequence, second);
}

TEST_F(SchedulerTest, RefusesRequestsThatCanNeverFit) {
  Start(8);
  EXPECT_TRUE(scheduler->CheckFits(30, 2).ok());
  EXPECT_EQ(scheduler->CheckFits(30, 3).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler->CheckFits(0, 3).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler->CheckFits(3, INT64_MAX).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler->CheckFits(INT64_MAX, INT64_MAX).code(), absl::StatusCode::kInvalidArgument);
  Start(1024);
  EXPECT_TRUE(scheduler->CheckFits(200, 56).ok());
  EXPECT_EQ(scheduler->CheckFits(200, 57).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SchedulerTest, AsksOfAWindowGroupOnlyTheWindowAndTheBlockBeingFilled) {
  Start(4, SchedulingPolicy::kFcfs, {9});
  EXPECT_TRUE(scheduler->CheckFits(100, 100).ok());
  Start(3, SchedulingPolicy::kFcfs, {9});
  EXPECT_FALSE(scheduler->CheckFits(100, 100).ok());
  EXPECT_TRUE(scheduler->CheckFits(6, 6).ok());
}

TEST_F(SchedulerTest, DropsBlocksThatAWindowHasLeftBehind) {
  Start(8, SchedulingPolicy::kFcfs, {6});
  Sequence* sequence = Add(100);
  while (sequence->num_generated_tokens() == 0) Step(8);
  const BlockTable& table = sequence->block_tables[0];
  for (size_t i = 0; i < table.size(); ++i)
    EXPECT_EQ(table[i] == kNullBlock, i < (100 - 6) / 4) << i;
}

TEST_F(SchedulerTest, RollbackLeavesEverythingAsBeforeThePlan) {
  Start(32);
  Sequence* running = Add(10);
  Step(6);
  const std::vector<BlockTable> tables = running->block_tables;
  Sequence* waiting = Add(4, 50);
  const SchedulerCounters before = scheduler->counters();
  const StepPlan plan = Plan(100);
  EXPECT_EQ(plan.chunks.size(), 2u);
  scheduler->Rollback(plan);
  EXPECT_TRUE(scheduler->CheckInvariants().ok()) << scheduler->CheckInvariants();
  EXPECT_EQ(running->num_computed_tokens, 6);
  EXPECT_EQ(running->block_tables, tables);
  EXPECT_EQ(waiting->status, SequenceStatus::kWaiting);
  EXPECT_EQ(waiting->stats.first_scheduled_ns, 0);
  EXPECT_EQ(scheduler->counters().held_blocks_current, before.held_blocks_current);
  EXPECT_EQ(scheduler->counters().queried_tokens_total, before.queried_tokens_total);
  EXPECT_EQ(Step(100).num_tokens, 8);
}

TEST_F(SchedulerTest, RemovesSequencesInAnyState) {
  Start(8);
  Sequence* running = Add(10);
  Step(6);
  Sequence* waiting = Add(4, 50);
  scheduler->Remove(waiting);
  scheduler->Remove(running);
  scheduler->Remove(running);
  EXPECT_EQ(running->status, SequenceStatus::kFinished);
  EXPECT_TRUE(scheduler->CheckInvariants().ok());
  EXPECT_TRUE(Plan(10).chunks.empty());
  EXPECT_EQ(scheduler->counters().held_blocks_current, 0);
  EXPECT_GT(scheduler->counters().cached_blocks_current, 0);
  scheduler->FlushPrefixCache();
  EXPECT_EQ(scheduler->counters().free_blocks_current, 8);
}

TEST_F(SchedulerTest, RefusesImpossibleOptions) {
  SchedulerOptions options;
  options.max_context_tokens = 100;
  options.groups = {{0, {}}};
  options.num_blocks = {4};
  EXPECT_TRUE(Scheduler::Create(options).ok());
  SchedulerOptions bad = options;
  bad.block_size = 12;
  EXPECT_EQ(Scheduler::Create(bad).status().code(), absl::StatusCode::kInvalidArgument);
  bad = options;
  bad.num_blocks = {0};
  EXPECT_EQ(Scheduler::Create(bad).status().code(), absl::StatusCode::kInvalidArgument);
  bad = options;
  bad.num_blocks = {4, 4};
  EXPECT_EQ(Scheduler::Create(bad).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace llm
