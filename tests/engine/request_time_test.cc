// Where a request's time went: each part, and that they are the whole whatever happens. What was
// received is compared with the engine's totals when a harness ends.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"
#include "tests/engine/reconcile.h"

namespace llm {
namespace {

HarnessOptions Ticking() {
  HarnessOptions options;
  options.clock = std::make_shared<TickingClock>();
  return options;
}

TEST(RequestTimeTest, WaitingPrefillAndDecodeAreToldApart) {
  EngineHarness harness;
  harness.runner().step_ns = 10;
  const uint64_t id = harness.Submit(harness.Spec(std::string(40, 'a'), 4));
  harness.clock().AdvanceNs(7);
  harness.RunAll();
  const RequestStats& stats = harness.Of(id).stats;
  EXPECT_EQ(stats.queue_ns, 7);
  EXPECT_EQ(stats.prefill_ns, 30) << "3 chunks of at most 16 tokens";
  EXPECT_EQ(stats.decode_ns, 30) << "the first token came with the prefill";
  EXPECT_EQ(stats.stall_ns, 0);
  EXPECT_EQ(stats.deliver_ns, 0);
  EXPECT_EQ(stats.total_ns, 67);
}

TEST(RequestTimeTest, TimeBetweenItsStepsIsAStall) {
  EngineHarness harness;
  harness.runner().step_ns = 10;
  const uint64_t id = harness.Submit(harness.Spec("abc", 3));
  harness.Step();
  harness.clock().AdvanceNs(5);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).stats.stall_ns, 5);
  EXPECT_EQ(harness.Of(id).stats.decode_ns, 20);
}

TEST(RequestTimeTest, AStepThatFailedIsAStallOfTheRunningAndQueueingOfTheNew) {
  EngineHarness harness;
  harness.runner().step_ns = 10;
  harness.runner().before = [](int step, const StepPlan&) {
    return step == 1 ? absl::InternalError("injected") : absl::OkStatus();
  };
  const uint64_t running = harness.Submit(harness.Spec("abc", 3));
  harness.Step();
  const uint64_t fresh = harness.Submit(harness.Spec("xyz", 1));
  harness.RunAll();
  EXPECT_EQ(harness.Of(running).stats.stall_ns, 10);
  EXPECT_EQ(harness.Of(fresh).stats.queue_ns, 10);
  EXPECT_EQ(harness.Of(fresh).stats.stall_ns, 0);
}

TEST(RequestTimeTest, ARequestThatNeverRanQueuedAllItsTime) {
  EngineHarness harness;
  RequestSpec spec = harness.Spec("abc", 3);
  spec.first_token_timeout_ns = 5;
  const uint64_t late = harness.Submit(spec);
  const uint64_t cancelled = harness.Submit(harness.Spec("abc", 3));
  harness.clock().AdvanceNs(9);
  EXPECT_TRUE(harness.engine().Cancel(cancelled).ok());
  harness.RunAll();
  for (const uint64_t id : {late, cancelled}) {
    EXPECT_EQ(harness.Of(id).stats.queue_ns, 9);
    EXPECT_EQ(harness.Of(id).stats.total_ns, 9);
  }
}

TEST(RequestTimeTest, ACancelledRequestsFinishedWaitsForTheOthersStep) {
  EngineHarness harness;
  harness.runner().step_ns = 10;
  const uint64_t id = harness.Submit(harness.Spec("abc", 20));
  harness.Submit(harness.Spec("xyz", 3));
  harness.Step();
  harness.clock().AdvanceNs(4);
  EXPECT_TRUE(harness.engine().Cancel(id).ok());
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).stats.stall_ns, 4);
  EXPECT_EQ(harness.Of(id).stats.deliver_ns, 10);
}

TEST(RequestTimeTest, APausedRequestStalls) {
  HarnessOptions options = Ticking();
  options.engine.max_pending_bytes = 16;
  EngineHarness harness(options);
  const uint64_t id = harness.Submit(harness.Spec("abc", 40));
  while (harness.Step()) {
  }
  harness.clock().AdvanceNs(1'000'000);
  harness.Poll();
  harness.RunAll();
  EXPECT_GE(harness.Of(id).stats.stall_ns, 1'000'000);
  EXPECT_LT(harness.Of(id).stats.decode_ns, 1'000'000);
}

TEST(RequestTimeTest, APreemptedRequestStalls) {
  HarnessOptions options = Ticking();
  options.scheduler.prefix_cache = false;
  options.scheduler.num_blocks = {12};
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 48;
  EngineHarness harness(options);
  for (int i = 0; i < 3; ++i) harness.Submit(harness.Spec("abcdefgh", 30));
  harness.RunAll();
  EXPECT_GT(harness.engine().Metrics().scheduler.preemptions_total, 0u);
  for (const auto& [id, received] : harness.received()) {
    if (received.stats.preemptions == 0) continue;
    EXPECT_GT(received.stats.stall_ns, 1000) << id;
  }
}

TEST(RequestTimeTest, AnUnhealthyEnginesRequestsHaveTheirWholeTime) {
  EngineHarness harness(Ticking());
  harness.runner().before = [](int step, const StepPlan&) {
    return step > 2 ? absl::InternalError("injected") : absl::OkStatus();
  };
  const uint64_t id = harness.Submit(harness.Spec("abc", 9));
  for (int i = 0; i < 10 && harness.engine().loop().healthy(); ++i) harness.Step();
  harness.Poll();
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kError);
  ExpectWholeTime(harness.Of(id).stats);
  ExpectFirstTokenTime(harness.Of(id).stats);
}

}  // namespace
}  // namespace llm
