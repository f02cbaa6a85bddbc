// Many callers, several pollers and callbacks at once; meant for the thread sanitizer as well.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

constexpr int kCallers = 4;
constexpr int kRequestsEach = 40;

struct Ledger {
  std::mutex mutex;
  std::map<uint64_t, Received> received;
  std::atomic<int> finished{0};

  void Add(const Event& event) {
    std::lock_guard<std::mutex> lock(mutex);
    received[event.id].Add(event);
    if (event.type == EventType::kFinished) ++finished;
  }
};

TEST(ThreadTest, EveryRequestOfManyCallersEndsOnceWithItsOwnAnswer) {
  HarnessOptions options;
  options.engine.manual = false;
  options.engine.max_pending_bytes = 64;
  EngineHarness harness(options);
  Ledger ledger;
  EventHandler handler;
  handler.call = [](void* host, const Event& event) { static_cast<Ledger*>(host)->Add(event); };
  handler.host = &ledger;
  std::mutex specs_mutex;
  std::map<uint64_t, std::string> prompts;
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      for (int i = 0; i < kRequestsEach; ++i) {
        const std::string prompt = "caller " + std::string(1, static_cast<char>('a' + c)) +
                                   std::string(1, static_cast<char>('a' + i % 7));
        RequestSpec spec = harness.Spec(prompt, 1 + i % 30);
        if (i % 2 == 0) spec.handler = handler;
        uint64_t id = 0;
        ASSERT_TRUE(harness.engine().Submit(spec, &id).ok());
        if (i % 5 == 0) (void)harness.engine().Cancel(id);
        (void)harness.engine().Metrics();
        std::lock_guard<std::mutex> lock(specs_mutex);
        prompts[id] = prompt;
      }
    });
  }
  std::thread poller([&] {
    while (ledger.finished < kCallers * kRequestsEach) {
      const auto add = [&](size_t, const Event& event) { ledger.Add(event); };
      ASSERT_TRUE(harness.engine().queue()->Poll(3, 1'000'000, add).ok());
    }
  });
  for (std::thread& caller : callers) caller.join();
  poller.join();
  EXPECT_TRUE(harness.engine().Shutdown(-1).ok());
  ASSERT_EQ(ledger.received.size(), static_cast<size_t>(kCallers * kRequestsEach));
  std::map<std::string, std::vector<int32_t>> answers;
  for (const auto& [id, received] : ledger.received) {
    EXPECT_EQ(received.num_finished, 1);
    EXPECT_FALSE(received.token_after_finish);
    std::vector<int32_t>& answer = answers[prompts[id]];
    if (answer.empty()) answer = RunAlone(HarnessOptions(), harness.Spec(prompts[id], 30)).ids;
    ASSERT_LE(received.ids.size(), answer.size());
    EXPECT_TRUE(std::equal(received.ids.begin(), received.ids.end(), answer.begin()));
  }
  EXPECT_EQ(harness.engine().Metrics().step.finished_requests_total,
            static_cast<uint64_t>(kCallers * kRequestsEach));
}

TEST(ThreadTest, ABlockedPollIsWokenByAnEvent) {
  HarnessOptions options;
  options.engine.manual = false;
  EngineHarness harness(options);
  std::thread poller([&] {
    Received received;
    while (received.num_finished == 0) {
      const auto add = [&](size_t, const Event& event) { received.Add(event); };
      ASSERT_TRUE(harness.engine().queue()->Poll(8, -1, add).ok());
    }
    EXPECT_EQ(received.ids.size(), 5u);
  });
  harness.Submit(harness.Spec("abc", 5));
  poller.join();
}

// The undefined-behaviour sanitizer watches the clock arithmetic.
TEST(ThreadTest, AWaitToTheEndOfTimeEndsWithTheWake) {
  Waker waker;
  waker.Wake();
  waker.Wait(INT64_MAX);
}

}  // namespace
}  // namespace llm
