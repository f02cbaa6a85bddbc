// Held batches: who waits for whom, and never longer than the host allows.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

constexpr int64_t kHoldNs = 200'000;

HarnessOptions Options() {
  HarnessOptions options;
  options.engine.hold_ns = kHoldNs;
  options.engine.max_step_tokens = 32;
  return options;
}

TEST(HoldTest, RequestsThatComeInTimeShareTheFirstStep) {
  EngineHarness harness(Options());
  harness.Submit(harness.Spec("one", 4));
  EXPECT_TRUE(harness.Step()) << "there is something to do, only not yet";
  harness.clock().AdvanceNs(kHoldNs / 2);
  harness.Submit(harness.Spec("two", 4));
  harness.Step();
  EXPECT_EQ(harness.runner().steps(), 0);
  harness.clock().AdvanceNs(kHoldNs / 2);
  harness.Step();
  EXPECT_EQ(harness.runner().steps(), 1);
  EXPECT_EQ(harness.engine().Metrics().scheduler.running_current, 2);
}

TEST(HoldTest, NobodyIsHeldLongerThanTheFirstMayBe) {
  EngineHarness harness(Options());
  harness.Submit(harness.Spec("one", 4));
  for (int i = 0; i < 3; ++i) {
    harness.clock().AdvanceNs(kHoldNs / 4);
    harness.Submit(harness.Spec("x", 4));
    harness.Step();
    EXPECT_EQ(harness.runner().steps(), 0);
  }
  harness.clock().AdvanceNs(kHoldNs / 4);
  harness.Step();
  EXPECT_EQ(harness.runner().steps(), 1);
}

TEST(HoldTest, AStepThatIsHalfFullIsNotHeld) {
  EngineHarness harness(Options());
  harness.Submit(harness.Spec(std::string(16, 'x'), 4));
  harness.Step();
  EXPECT_EQ(harness.runner().steps(), 1);
}

TEST(HoldTest, WhileAnyoneHasBegunNobodyIsHeld) {
  EngineHarness harness(Options());
  harness.Submit(harness.Spec("one", 20));
  harness.clock().AdvanceNs(kHoldNs);
  harness.Step();
  harness.Submit(harness.Spec("two", 4));
  harness.Step();
  EXPECT_EQ(harness.runner().steps(), 2);
  EXPECT_EQ(harness.engine().Metrics().scheduler.running_current, 2);
}

TEST(HoldTest, ACancelEndsTheHold) {
  EngineHarness harness(Options());
  const uint64_t id = harness.Submit(harness.Spec("one", 4));
  harness.Step();
  EXPECT_TRUE(harness.engine().Cancel(id).ok());
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kCancelled);
  EXPECT_EQ(harness.runner().steps(), 0);
}

TEST(HoldTest, WhoHasADeadlineBeforeItsEndIsNotHeld) {
  EngineHarness harness(Options());
  RequestSpec spec = harness.Spec("one", 4);
  spec.first_token_timeout_ns = kHoldNs / 4;
  const uint64_t id = harness.Submit(spec);
  harness.Step();
  harness.Poll();
  EXPECT_EQ(harness.Of(id).ids.size(), 1u);
}

TEST(HoldTest, AnswersAreTheSame) {
  EngineHarness harness(Options());
  const RequestSpec spec = harness.Spec("one", 12);
  const uint64_t id = harness.Submit(spec);
  while (harness.Of(id).num_finished == 0) {
    harness.clock().AdvanceNs(kHoldNs / 8);
    harness.Step();
    harness.Poll();
  }
  EXPECT_EQ(harness.Of(id).ids, RunAlone(HarnessOptions(), spec).ids);
}

TEST(HoldTest, WhoStatesWhenItsEndIsDueStartsAtOnce) {
  EngineHarness harness(Options());
  RequestSpec spec = harness.Spec("one", 4);
  spec.completion_timeout_ns = 100 * kHoldNs;
  harness.Submit(spec);
  harness.Step();
  EXPECT_EQ(harness.runner().steps(), 1);
  harness.RunAll();
}

TEST(HoldTest, AScoreStartsAtOnce) {
  EngineHarness harness(Options());
  const std::vector<int32_t> text = harness.tokenizer().Ids("abcd");
  ScoreSpec score;
  score.prompt_kind = PromptKind::kIds;
  score.ids = text;
  EXPECT_TRUE(harness.engine().Score(score).ok());  // on a clock that stands still
}

}  // namespace
}  // namespace llm
