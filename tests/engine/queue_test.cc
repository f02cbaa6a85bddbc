// Contract of completion queues: poll, lending, the descriptor, closing, and slow readers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

bool Readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

size_t PollInto(CompletionQueue* queue, size_t capacity, std::vector<Event>* events) {
  events->clear();
  const absl::StatusOr<size_t> count =
      queue->Poll(capacity, 0, [&](size_t, const Event& event) { events->push_back(event); });
  EXPECT_TRUE(count.ok()) << count.status();
  return count.value_or(0);
}

TEST(QueueTest, AnEmptyPollIsOkWithNothing) {
  EngineHarness harness;
  std::vector<Event> events;
  EXPECT_EQ(PollInto(harness.engine().queue().get(), 4, &events), 0u);
}

TEST(QueueTest, DeltasCoalesceUntilTheyAreTaken) {
  EngineHarness harness;
  harness.Submit(harness.Spec("abc", 5));
  for (int i = 0; i < 4; ++i) harness.Step();
  std::vector<Event> events;
  ASSERT_EQ(PollInto(harness.engine().queue().get(), 4, &events), 1u);
  EXPECT_EQ(events[0].type, EventType::kTokens);
  EXPECT_EQ(events[0].token_ids.size(), 4u);
}

TEST(QueueTest, WhatAnEventLendsStaysUntilTheNextPoll) {
  EngineHarness harness;
  harness.Submit(harness.Spec("abc", 40));
  harness.Step();
  std::vector<Event> events;
  ASSERT_EQ(PollInto(harness.engine().queue().get(), 4, &events), 1u);
  const int32_t first = events[0].token_ids[0];
  const std::string text(events[0].text);
  for (int i = 0; i < 30; ++i) harness.Step();
  EXPECT_EQ(events[0].token_ids[0], first);
  EXPECT_EQ(std::string(events[0].text), text);
}

TEST(QueueTest, TokensComeBeforeFinishedAlsoWithRoomForOneEvent) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(harness.Spec("abc", 3));
  while (harness.Step()) {
  }
  std::vector<Event> events;
  ASSERT_EQ(PollInto(harness.engine().queue().get(), 1, &events), 1u);
  EXPECT_EQ(events[0].type, EventType::kTokens);
  ASSERT_EQ(PollInto(harness.engine().queue().get(), 1, &events), 1u);
  EXPECT_EQ(events[0].type, EventType::kFinished);
  EXPECT_EQ(events[0].id, id);
  EXPECT_EQ(PollInto(harness.engine().queue().get(), 1, &events), 0u);
}

TEST(QueueTest, TheDescriptorIsReadableWhileEventsWait) {
  EngineHarness harness;
  CompletionQueue* queue = harness.engine().queue().get();
  const absl::StatusOr<int> fd = queue->Fd();
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(*queue->Fd(), *fd);
  EXPECT_NE(fcntl(*fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(Readable(*fd));
  harness.Submit(harness.Spec("abc", 3));
  harness.Submit(harness.Spec("abc", 3));
  harness.Step();
  EXPECT_TRUE(Readable(*fd));
  std::vector<Event> events;
  PollInto(queue, 1, &events);
  EXPECT_TRUE(Readable(*fd)) << "one request's event still waits";
  PollInto(queue, 1, &events);
  EXPECT_FALSE(Readable(*fd));
}

TEST(QueueTest, ADescriptorMadeLateIsReadableToo) {
  EngineHarness harness;
  harness.Submit(harness.Spec("abc", 3));
  harness.Step();
  EXPECT_TRUE(Readable(*harness.engine().queue()->Fd()));
}

TEST(QueueTest, AWaitOnTheQueueOfAManualEngineIsRefused) {
  EngineHarness harness;
  const auto ignore = [](size_t, const Event&) {};
  EXPECT_EQ(harness.engine().queue()->Poll(1, -1, ignore).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(harness.engine().queue()->Poll(1, 5, ignore).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(QueueTest, ASecondConcurrentPollIsRefusedAndSoIsClosing) {
  CompletionQueue queue;
  std::thread waiter([&] {
    const auto ignore = [](size_t, const Event&) {};
    // Ends by its own timeout: nothing is ever pushed.
    EXPECT_TRUE(queue.Poll(1, 300'000'000, ignore).ok());
  });
  const auto ignore = [](size_t, const Event&) {};
  while (queue.Poll(1, 0, ignore).ok()) std::this_thread::yield();
  EXPECT_EQ(queue.Close().code(), absl::StatusCode::kFailedPrecondition);
  waiter.join();
  EXPECT_TRUE(queue.Close().ok());
}

TEST(QueueTest, EventsOfAClosedQueueAreDroppedAndTheRequestStillEnds) {
  EngineHarness harness;
  auto queue = std::make_shared<CompletionQueue>();
  RequestSpec spec = harness.Spec("abc", 5);
  spec.queue = queue;
  harness.Submit(spec);
  harness.Step();
  EXPECT_TRUE(queue->Close().ok());
  harness.RunAll();
  EXPECT_EQ(harness.engine().Metrics().step.finished_requests_total, 1u);
  EXPECT_FALSE(queue->Poll(1, 0, [](size_t, const Event&) {}).ok());
}

TEST(QueueTest, RequestsOfOneEngineMayUseSeveralQueues) {
  EngineHarness harness;
  auto queue = std::make_shared<CompletionQueue>();
  RequestSpec spec = harness.Spec("abc", 2);
  const uint64_t own = harness.Submit(spec);
  spec.queue = queue;
  int user_data = 0;
  spec.user_data = &user_data;
  const uint64_t other = harness.Submit(spec);
  harness.RunAll();
  std::vector<Event> events;
  PollInto(queue.get(), 8, &events);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].id, other);
  EXPECT_EQ(events[0].user_data, &user_data);
  EXPECT_EQ(harness.Of(own).num_finished, 1);
}

TEST(QueueTest, ASlowReaderPausesItsRequestAloneAndLosesNothing) {
  HarnessOptions options;
  options.engine.max_pending_bytes = 20;
  EngineHarness harness(options);
  auto slow = std::make_shared<CompletionQueue>();
  RequestSpec spec = harness.Spec("abcdefg", 40);
  const Received alone = RunAlone(HarnessOptions(), spec);
  spec.queue = slow;
  harness.Submit(spec);
  const uint64_t fast = harness.Submit(harness.Spec("xyz", 40));
  harness.RunAll();
  EXPECT_EQ(harness.Of(fast).num_finished, 1);
  EXPECT_EQ(harness.engine().Metrics().step.paused_current, 1u);
  Received received;
  for (int i = 0; i < 100 && received.num_finished == 0; ++i) {
    ASSERT_TRUE(slow->Poll(4, 0, [&](size_t, const Event& event) { received.Add(event); }).ok());
    harness.RunAll();
  }
  EXPECT_EQ(received.ids, alone.ids);
  EXPECT_EQ(received.text, alone.text);
  EXPECT_EQ(received.num_finished, 1);
}

TEST(QueueTest, APausedRequestRunsOnWhenItsQueueIsClosed) {
  HarnessOptions options;
  options.engine.max_pending_bytes = 20;
  EngineHarness harness(options);
  auto slow = std::make_shared<CompletionQueue>();
  RequestSpec spec = harness.Spec("abc", 40);
  spec.queue = slow;
  harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.engine().Metrics().step.paused_current, 1u);
  EXPECT_TRUE(slow->Close().ok());
  harness.RunAll();
  EXPECT_EQ(harness.engine().Metrics().step.finished_requests_total, 1u);
}

TEST(QueueTest, APausedRequestCanBeCancelledAndMissItsDeadline) {
  HarnessOptions options;
  options.engine.max_pending_bytes = 20;
  EngineHarness harness(options);
  auto slow = std::make_shared<CompletionQueue>();
  RequestSpec spec = harness.Spec("abc", 40);
  spec.queue = slow;
  const uint64_t cancelled = harness.Submit(spec);
  spec.completion_timeout_ns = 1'000'000;
  harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.engine().Metrics().step.paused_current, 2u);
  EXPECT_TRUE(harness.engine().Cancel(cancelled).ok());
  harness.clock().AdvanceNs(2'000'000);
  harness.RunAll();
  EXPECT_EQ(harness.engine().Metrics().step.cancelled_requests_total, 1u);
  EXPECT_EQ(harness.engine().Metrics().step.deadline_requests_total, 1u);
}

}  // namespace
}  // namespace llm
