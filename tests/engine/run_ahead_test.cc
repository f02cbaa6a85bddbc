// An engine whose runner begins steps of decodes before they are asked for: which steps those are,
// and when somebody who comes gets into one.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

HarnessOptions Options(bool run_ahead = true) {
  HarnessOptions options;
  options.run_ahead = run_ahead;
  return options;
}

uint64_t Total(EngineHarness* harness) { return harness->runner().ahead().steps_total; }
uint64_t Dropped(EngineHarness* harness) { return harness->runner().ahead().dropped_total; }

// Of ten tokens the first comes of the prompt, and nothing can begin before it: nine are ahead.
TEST(RunAheadTest, EveryDecodeOfALoneRequestHasBegunBefore) {
  EngineHarness harness(Options());
  const uint64_t id = harness.Submit(harness.Spec("hello", 10));
  harness.RunAll();
  harness.Poll();
  EXPECT_EQ(harness.Of(id).ids.size(), 10u);
  EXPECT_EQ(harness.runner().steps(), 10);
  EXPECT_EQ(Total(&harness), 9u);
  EXPECT_EQ(Dropped(&harness), 0u);
}

TEST(RunAheadTest, NothingBeginsBeforeItsTimeOnOtherRunners) {
  EngineHarness harness(Options(/*run_ahead=*/false));
  harness.Submit(harness.Spec("hello", 10));
  harness.RunAll();
  EXPECT_EQ(Total(&harness), 0u);
}

// The step that had begun is taken as it is, and the one after it waits for nobody.
TEST(RunAheadTest, WhoComesMeanwhileStartsAStepLater) {
  EngineHarness harness(Options());
  harness.Submit(harness.Spec("hello", 20));
  for (int i = 0; i < 3; ++i) harness.Step();
  const uint64_t second = harness.Submit(harness.Spec("world", 3));
  harness.Step();
  EXPECT_EQ(Total(&harness), 3u);
  harness.Poll();
  EXPECT_TRUE(harness.Of(second).ids.empty());
  harness.Step();
  harness.Poll();
  EXPECT_EQ(harness.Of(second).ids.size(), 1u);
  EXPECT_EQ(Total(&harness), 3u);
  harness.RunAll();
  EXPECT_EQ(Dropped(&harness), 0u);
}

TEST(RunAheadTest, WhoLeavesTakesNothingFromTheOthers) {
  EngineHarness harness(Options());
  const uint64_t first = harness.Submit(harness.Spec("hello", 20));
  const uint64_t second = harness.Submit(harness.Spec("world", 20));
  for (int i = 0; i < 3; ++i) harness.Step();
  EXPECT_TRUE(harness.engine().Cancel(first).ok());
  harness.Step();
  EXPECT_EQ(Total(&harness), 3u);
  harness.RunAll();
  harness.Poll();
  EXPECT_EQ(harness.Of(second).ids.size(), 20u);
  EXPECT_EQ(Dropped(&harness), 0u);
}

TEST(RunAheadTest, AStepWhoseRequestsHaveAllEndedIsDropped) {
  EngineHarness harness(Options());
  harness.runner().script = {3, 4, 5};  // and then the end
  RequestSpec spec = harness.Spec("hello", 20);
  spec.ignore_eos = false;
  harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(Total(&harness), 3u);
  EXPECT_EQ(Dropped(&harness), 0u);  // not yet: nobody has asked for anything
  const uint64_t next = harness.Submit(harness.Spec("world", 4));
  harness.RunAll();
  harness.Poll();
  EXPECT_EQ(harness.Of(next).ids.size(), 4u);
  EXPECT_EQ(Dropped(&harness), 1u);
}

TEST(RunAheadTest, AStepThatFailsLeavesNothingBegun) {
  EngineHarness harness(Options());
  harness.runner().before = [](int step, const StepPlan&) {
    return step == 4 ? absl::InternalError("a failed step") : absl::OkStatus();
  };
  const uint64_t id = harness.Submit(harness.Spec("hello", 10));
  for (int i = 0; i < 5; ++i) harness.Step();
  EXPECT_FALSE(harness.runner().is_ahead());
  harness.RunAll();
  harness.Poll();
  EXPECT_EQ(harness.Of(id).ids, RunAlone(HarnessOptions(), harness.Spec("hello", 10)).ids);
}

}  // namespace
}  // namespace llm
