// How much of a prompt a step takes in beside decodes that wait for it.
#include <gtest/gtest.h>

#include "src/scheduler/layer_windows.h"
#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

constexpr int64_t kMs = 1'000'000;

class StepTimeTest : public SchedulerTest {
 protected:
  StepTimeTest() { Start(1000, SchedulingPolicy::kFcfs, {0}, 32); }

  // A machine that takes 1 ms a step, 0.1 ms a decode and 0.5 ms a prefilled token.
  static int64_t TakenNs(const StepWork& work) {
    return static_cast<int64_t>(1e6 + 1e5 * work.decode_rows + 5e5 * work.prefill_tokens);
  }
  void Learn() {
    const LayerWindows windows{{{.window = 0, .layers = {}}}};
    for (int step = 0; step < 60; ++step) {
      const StepWork decode = windows.Chunk(100 + step, 1);
      StepWork work = step % 2 == 0 ? windows.Chunk(0, 2 + step * 2) : decode;
      for (int row = 0; row < step % 5; ++row) work = work + decode;
      cost_.Note(work, TakenNs(work));
    }
  }
  StepLimit Limit(int64_t step_ns = 0) const {
    return {.max_tokens = 256, .step_ns = step_ns, .cost = &cost_};
  }
  Sequence* AddDecode(int64_t target_ns) {
    Sequence* sequence = Add(3, next_first_ += 50);
    sequence->request.token_gap_target_ns = target_ns;
    Step(256);
    return sequence;
  }
  static int32_t LengthOf(const StepPlan& plan, const Sequence* sequence) {
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (chunk.sequence == sequence) return chunk.length;
    }
    return 0;
  }

  StepCostModel cost_;

 private:
  int32_t next_first_ = 10'000;
};

TEST_F(StepTimeTest, AChunkIsTheLargestThatTheTightestDecodeTolerates) {
  Learn();
  AddDecode(50 * kMs);
  AddDecode(30 * kMs);
  Sequence* document = Add(200);
  // Nine tenths of 30 ms. 1 ms, 0.2 of the decodes, and 24 of 48 tokens; another tile of 8 takes 4.
  EXPECT_EQ(LengthOf(Step(Limit()), document), 48);
}

TEST_F(StepTimeTest, TargetsOfWhoDoesNotDecodeYetDoNotCount) {
  Learn();
  Sequence* document = Add(200);
  document->request.token_gap_target_ns = 5 * kMs;
  EXPECT_EQ(LengthOf(Step(Limit()), document), 200);
}

TEST_F(StepTimeTest, ATargetThatCannotBeMetStillLetsEightTokensThrough) {
  Learn();
  AddDecode(1);
  Sequence* first = Add(200);
  Sequence* second = Add(200, 5000);
  const StepPlan plan = Step(Limit());
  EXPECT_EQ(LengthOf(plan, first), 8);
  EXPECT_EQ(LengthOf(plan, second), 0) << "one prefill is enough to get ahead";
}

TEST_F(StepTimeTest, ATargetThatIsTheStepsOwnTimeHoldsAsStrictlyAsAnyOther) {
  Learn();
  AddDecode(2 * kMs);
  Sequence* document = Add(200);
  EXPECT_EQ(LengthOf(Step(Limit(2 * kMs)), document), 8) << "and not the 64 of a step without one";
}

TEST_F(StepTimeTest, ChunksShrinkByWhatTheLastPrefillsTookBeyondThePrediction) {
  Learn();
  const LayerWindows windows{{{.window = 0, .layers = {}}}};
  for (int step = 0; step < 64; ++step) {
    const StepWork work = windows.Chunk(0, 40 + step);
    cost_.Note(work, static_cast<int64_t>(static_cast<double>(TakenNs(work)) *
                                          (step % 2 == 0 ? 1.2 : 0.8)));
  }
  AddDecode(50 * kMs);
  Sequence* document = Add(200);
  const int32_t length = LengthOf(Step(Limit()), document);
  EXPECT_LE(length, 88) << "1.2 times what the fit says must stay within 50 ms";
  EXPECT_GE(length, 64);
}

TEST_F(StepTimeTest, WithoutATargetTheStepsOwnTimeHolds) {
  Learn();
  AddDecode(0);
  Sequence* document = Add(200);
  EXPECT_EQ(LengthOf(Step(Limit(60 * kMs)), document), 112);
  EXPECT_EQ(LengthOf(Step(Limit(1 * kMs)), document), 64) << "the least that is worth a step";
}

TEST_F(StepTimeTest, SeveralPromptsShareOneTime) {
  Learn();
  AddDecode(22 * kMs);
  Sequence* first = Add(20);
  Sequence* second = Add(200, 5000);
  const StepPlan plan = Step(Limit());
  EXPECT_EQ(LengthOf(plan, first), 20);
  EXPECT_EQ(LengthOf(plan, second), 16);
}

TEST_F(StepTimeTest, BeforeAnyPrefillWasSeenAStepTakes64Tokens) {
  Sequence* first = Add(200);
  Sequence* second = Add(200, 5000);
  const StepPlan plan = Step(Limit(100 * kMs));
  EXPECT_EQ(LengthOf(plan, first), 64);
  EXPECT_EQ(LengthOf(plan, second), 0);
}

TEST_F(StepTimeTest, BelievesTheModelUpToFourTimesWhatItHasSeen) {
  const LayerWindows windows{{{.window = 0, .layers = {}}}};
  for (int step = 0; step < 4; ++step) cost_.Note(windows.Chunk(0, 20), 1000);
  Sequence* document = Add(200);
  EXPECT_EQ(LengthOf(Step(Limit(100 * kMs)), document), 80);
}

TEST_F(StepTimeTest, WithoutAnyBoundOnlyTheBudgetCuts) {
  Learn();
  AddDecode(0);
  Sequence* document = Add(200);
  EXPECT_EQ(LengthOf(Step(Limit()), document), 200);
}

}  // namespace
}  // namespace llm
