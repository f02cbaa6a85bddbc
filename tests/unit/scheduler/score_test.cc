// Chunks of scored sequences: every token's logits, in pieces that leave rows for the others. A
// step of this fixture has eight rows.
#include <gtest/gtest.h>

#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

class ScoreChunkTest : public SchedulerTest {
 protected:
  Sequence* AddScored(int32_t size, int32_t score_begin) {
    Sequence* sequence = Add(size);
    sequence->score_begin = score_begin;
    return sequence;
  }
  // A step after which nothing is sampled.
  StepPlan ScoreStep(int32_t max_step_tokens) {
    StepPlan plan = Plan(max_step_tokens);
    scheduler->Commit(plan);
    return plan;
  }
  static const ScheduledChunk& ChunkOf(const StepPlan& plan, const Sequence* sequence) {
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (chunk.sequence == sequence) return chunk;
    }
    ADD_FAILURE() << "not in the plan";
    return plan.chunks[0];
  }
};

TEST_F(ScoreChunkTest, LogitsOfEveryTokenComeInPiecesOfTheRows) {
  Start(64);
  AddScored(20, 0);
  for (const int32_t expected : {8, 8, 4}) {
    const StepPlan plan = ScoreStep(64);
    ASSERT_EQ(plan.chunks.size(), 1u);
    EXPECT_EQ(plan.chunks[0].length, expected);
    EXPECT_EQ(plan.chunks[0].num_logits, expected);
  }
}

TEST_F(ScoreChunkTest, HiddenStatesComeInPiecesOfTheSameRows) {
  Start(64);
  AddScored(20, 0)->wants_hidden = true;
  for (const int32_t expected : {8, 8, 4}) {
    const StepPlan plan = ScoreStep(64);
    ASSERT_EQ(plan.chunks.size(), 1u);
    EXPECT_EQ(plan.chunks[0].num_hidden, expected);
    EXPECT_EQ(plan.chunks[0].num_logits, 0);
  }
}

// The cache is read again once score_begin is -1, and fed all along.
TEST_F(ScoreChunkTest, AToldPromptFeedsTheCacheAndDoesNotReadIt) {
  Start(64);
  for (int i = 0; i < 3; ++i) {
    Sequence* sequence = AddScored(8, i < 2 ? 0 : -1);
    const StepPlan plan = ScoreStep(64);
    ASSERT_EQ(plan.chunks.size(), 1u);
    EXPECT_EQ(plan.chunks[0].begin == 0, i < 2);
    EXPECT_EQ(sequence->stats.num_cached_tokens == 0, i < 2);
    scheduler->Remove(sequence);
  }
}

TEST_F(ScoreChunkTest, TokensBeforeTheFirstScoredOneTakeNoRows) {
  Start(64);
  AddScored(40, 30);
  const StepPlan first = ScoreStep(32);
  EXPECT_EQ(first.chunks[0].length, 32);
  EXPECT_EQ(first.chunks[0].num_logits, 2);
  const StepPlan second = ScoreStep(32);
  EXPECT_EQ(second.chunks[0].length, 8);
  EXPECT_EQ(second.chunks[0].num_logits, 8);
}

TEST_F(ScoreChunkTest, ARunningSequenceKeepsItsRow) {
  Start(64);
  Add(4);
  Step(64);
  Sequence* scored = AddScored(40, 0);
  ScoreStep(64);  // admits it, beside the decode, whose token is not appended
  EXPECT_LE(ChunkOf(ScoreStep(64), scored).num_logits, 8);
  Sequence* decoding = Add(4);
  const StepPlan plan = ScoreStep(64);
  int32_t rows = 0;
  for (const ScheduledChunk& chunk : plan.chunks) rows += chunk.num_logits;
  EXPECT_LE(rows, 8);
  EXPECT_EQ(ChunkOf(plan, decoding).num_logits, 1) << "one that waits is admitted beside a score";
}

TEST_F(ScoreChunkTest, RowsNeverExceedTheStepsWhateverRuns) {
  Start(64);
  std::vector<Sequence*> scored;
  for (int i = 0; i < 5; ++i) scored.push_back(AddScored(30 + i, i));
  for (int i = 0; i < 6; ++i) Add(10 + i);
  for (int step = 0; step < 200; ++step) {
    const StepPlan plan = Plan(1 + step % 17);
    int32_t rows = 0;
    for (const ScheduledChunk& chunk : plan.chunks) rows += chunk.num_logits;
    ASSERT_LE(rows, 8);
    scheduler->Commit(plan);
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (chunk.begin + chunk.length == chunk.sequence->num_tokens()) {
        scheduler->Remove(chunk.sequence);
      }
    }
    if (scheduler->Running().empty() && scheduler->Waiting().empty()) return;
  }
  FAIL() << "not done after 200 steps";
}

}  // namespace
}  // namespace llm
