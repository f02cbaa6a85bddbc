// Contract of callbacks: order, exceptions, what may be called inside, and the thread that runs
// them.
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

using Callback = std::function<void(const Event&)>;

EventHandler HandlerOf(Callback* callback) {
  EventHandler handler;
  handler.call = [](void* host, const Event& event) { (*static_cast<Callback*>(host))(event); };
  handler.host = callback;
  return handler;
}

// Lets a test wait for something that happens on the delivery thread.
class Latch {
 public:
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

HarnessOptions Threaded() {
  HarnessOptions options;
  options.engine.manual = false;
  return options;
}

TEST(CallbackTest, RunsInsideTheStepOfAManualEngine) {
  EngineHarness harness;
  Received received;
  std::thread::id thread;
  Callback callback = [&](const Event& event) {
    thread = std::this_thread::get_id();
    received.Add(event);
  };
  RequestSpec spec = harness.Spec("abc", 3);
  spec.handler = HandlerOf(&callback);
  harness.Submit(spec);
  harness.Step();
  EXPECT_EQ(received.ids.size(), 1u);
  EXPECT_EQ(thread, std::this_thread::get_id());
  harness.RunAll();
  EXPECT_EQ(received.num_finished, 1);
  EXPECT_FALSE(received.token_after_finish);
  EXPECT_EQ(received.ids.size(), 3u);
}

TEST(CallbackTest, AnExceptionEndsThatRequestWithOneFinished) {
  EngineHarness harness;
  int finished = 0;
  FinishReason reason = FinishReason::kNone;
  Callback callback = [&](const Event& event) {
    if (event.type == EventType::kFinished) {
      ++finished;
      reason = event.reason;
    }
    throw std::runtime_error("host");
  };
  RequestSpec spec = harness.Spec("abc", 30);
  spec.handler = HandlerOf(&callback);
  harness.Submit(spec);
  const uint64_t other = harness.Submit(harness.Spec("abc", 5));
  harness.RunAll();
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(reason, FinishReason::kError);
  EXPECT_EQ(harness.Of(other).reason, FinishReason::kLength);
  EXPECT_TRUE(harness.engine().Metrics().healthy);
}

TEST(CallbackTest, MaySubmitAndCancelButNotStepOrClose) {
  EngineHarness harness;
  absl::Status step;
  absl::Status close;
  uint64_t other = harness.Submit(harness.Spec("abc", 50));
  uint64_t submitted = 0;
  Callback callback = [&](const Event& event) {
    if (event.type != EventType::kFinished) return;
    EXPECT_TRUE(harness.engine().Submit(harness.Spec("xyz", 2), &submitted).ok());
    EXPECT_TRUE(harness.engine().Cancel(other).ok());
    step = harness.engine().Step().status();
    close = harness.engine().Close();
  };
  RequestSpec spec = harness.Spec("abc", 2);
  spec.handler = HandlerOf(&callback);
  harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(step.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(close.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(harness.Of(other).reason, FinishReason::kCancelled);
  EXPECT_EQ(harness.Of(submitted).reason, FinishReason::kLength);
}

TEST(CallbackTest, TimeInCallbacksIsCounted) {
  EngineHarness harness;
  Callback callback = [&](const Event&) { harness.clock().AdvanceNs(500); };
  RequestSpec spec = harness.Spec("abc", 3);
  spec.handler = HandlerOf(&callback);
  harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.engine().Metrics().callback_ns_total, 4u * 500);
}

TEST(CallbackTest, ABlockingCallbackDelaysNeitherStepsNorQueues) {
  EngineHarness harness(Threaded());
  Latch release;
  Latch finished;
  Callback callback = [&](const Event& event) {
    if (event.type == EventType::kFinished) {
      finished.Open();
    } else {
      release.Wait();
    }
  };
  RequestSpec spec = harness.Spec("abc", 20);
  spec.handler = HandlerOf(&callback);
  harness.Submit(spec);
  const uint64_t other = harness.Submit(harness.Spec("xyz", 20));
  while (harness.Of(other).num_finished == 0) {
    ASSERT_TRUE(harness.engine()
                    .queue()
                    ->Poll(8, -1, [&](size_t, const Event& e) { harness.Of(e.id).Add(e); })
                    .ok());
  }
  EXPECT_EQ(harness.engine().Shutdown(0).code(), absl::StatusCode::kDeadlineExceeded);
  release.Open();
  finished.Wait();
  EXPECT_TRUE(harness.engine().Shutdown(-1).ok());
}

TEST(CallbackTest, CloseInsideACallbackOfTheDeliveryThreadIsRefused) {
  EngineHarness harness(Threaded());
  Latch done;
  absl::Status close;
  absl::Status shutdown;
  Callback callback = [&](const Event& event) {
    if (event.type != EventType::kFinished) return;
    close = harness.engine().Close();
    shutdown = harness.engine().Shutdown(-1);
    done.Open();
  };
  RequestSpec spec = harness.Spec("abc", 2);
  spec.handler = HandlerOf(&callback);
  harness.Submit(spec);
  done.Wait();
  EXPECT_EQ(close.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(shutdown.code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace llm
