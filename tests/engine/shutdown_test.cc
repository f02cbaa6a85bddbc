// Contract of shutdown and close, and of manual drive.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

HarnessOptions Threaded() {
  HarnessOptions options;
  options.engine.manual = false;
  return options;
}

TEST(ShutdownTest, EndsEveryOpenRequestAndItsEventsCanStillBePolled) {
  EngineHarness harness;
  const uint64_t running = harness.Submit(harness.Spec("abc", 50));
  harness.Step();
  const uint64_t queued = harness.Submit(harness.Spec("abc", 50));
  EXPECT_TRUE(harness.engine().Shutdown(0).ok());
  harness.Poll();
  for (const uint64_t id : {running, queued}) {
    EXPECT_EQ(harness.Of(id).num_finished, 1);
    EXPECT_EQ(harness.Of(id).reason, FinishReason::kCancelled);
    EXPECT_EQ(harness.Of(id).status, absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(harness.Of(running).ids.size(), 1u);
}

TEST(ShutdownTest, LaterSubmitsAndStepsAreRefused) {
  EngineHarness harness;
  EXPECT_TRUE(harness.engine().Shutdown(0).ok());
  EXPECT_TRUE(harness.engine().Shutdown(0).ok()) << "again is harmless";
  uint64_t id = 0;
  EXPECT_EQ(harness.engine().Submit(harness.Spec("abc", 1), &id).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(harness.engine().Step().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ShutdownTest, EndsTheRequestsOfAnEngineWithThreads) {
  EngineHarness harness(Threaded());
  std::vector<uint64_t> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(harness.Submit(harness.Spec("abc", 200)));
  EXPECT_TRUE(harness.engine().Shutdown(-1).ok());
  harness.Poll();
  for (const uint64_t id : ids) EXPECT_EQ(harness.Of(id).num_finished, 1);
}

TEST(ShutdownTest, EventsOutliveTheEngineInAQueueOfTheHost) {
  auto queue = std::make_shared<CompletionQueue>();
  Received received;
  {
    EngineHarness harness;
    RequestSpec spec = harness.Spec("abc", 3);
    spec.queue = queue;
    harness.Submit(spec);
    harness.RunAll();
  }
  ASSERT_TRUE(queue->Poll(8, 0, [&](size_t, const Event& event) { received.Add(event); }).ok());
  EXPECT_EQ(received.num_finished, 1);
  EXPECT_EQ(received.ids.size(), 3u);
}

TEST(ShutdownTest, StepOfAnEngineWithThreadsIsRefused) {
  EngineHarness harness(Threaded());
  EXPECT_EQ(harness.engine().Step().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ShutdownTest, AnIdleStepSaysThatThereWasNothingToDo) {
  EngineHarness harness;
  EXPECT_FALSE(harness.Step());
  harness.Submit(harness.Spec("abc", 1));
  EXPECT_TRUE(harness.Step());
  EXPECT_FALSE(harness.Step());
}

TEST(ShutdownTest, CloseFinishesCallbacksOfAManualEngine) {
  Received received;
  EventHandler handler;
  handler.call = [](void* host, const Event& event) { static_cast<Received*>(host)->Add(event); };
  handler.host = &received;
  {
    EngineHarness harness;
    RequestSpec spec = harness.Spec("abc", 30);
    spec.handler = handler;
    harness.Submit(spec);
    harness.Step();
  }
  EXPECT_EQ(received.num_finished, 1);
  EXPECT_EQ(received.reason, FinishReason::kCancelled);
}

}  // namespace
}  // namespace llm
