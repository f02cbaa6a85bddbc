// Calls the host's callbacks: on its own thread, or inside the step of a manually driven engine.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "src/base/clock.h"
#include "src/base/trace.h"
#include "src/engine/delivery.h"
#include "src/engine/wait_deadline.h"

namespace llm {

class CallbackDispatcher : public EventSink {
 public:
  // `trace` lives until Stop.
  CallbackDispatcher(std::shared_ptr<const Clock> clock, TraceRecorder* trace)
      : clock_(std::move(clock)), trace_(trace) {}
  // REQUIRES: not inside a callback.
  ~CallbackDispatcher() override { Stop(); }

  // RESOURCE_EXHAUSTED when the thread cannot be created. Not called for manual drive.
  absl::Status Start();
  // Drops what waits, and returns when the running callback has.
  void Stop();

  // Manual drive: calls every callback that is due, on this thread.
  void DrainHere();
  // Waits until nothing is due and no callback runs; false when the deadline came first.
  bool WaitIdle(const WaitDeadline& deadline);

  bool InCallback() const { return calling_thread_.load() == std::this_thread::get_id(); }
  uint64_t callback_ns_total() const { return callback_ns_total_.load(std::memory_order_relaxed); }

 private:
  void OnReady() override { ready_.notify_all(); }
  void ThreadLoop();
  void Call(const TakenEvent& taken);

  const std::shared_ptr<const Clock> clock_;
  TraceRecorder* const trace_;
  std::condition_variable ready_;
  bool stop_ = false;
  bool busy_ = false;
  std::atomic<std::thread::id> calling_thread_{};
  std::atomic<uint64_t> callback_ns_total_{0};
  std::thread thread_;
};

}  // namespace llm
