// No lock is held while the host's code runs, so a callback may submit, cancel, and poll.
#include "src/engine/callback_dispatcher.h"

#include "src/base/library_thread.h"

namespace llm {

absl::Status CallbackDispatcher::Start() {
  return StartThread(
      "delivery thread", [this] { ThreadLoop(); }, &thread_);
}

void CallbackDispatcher::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    CloseLocked();
  }
  ready_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CallbackDispatcher::ThreadLoop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ready_.wait(lock, [this] { return stop_ || HasReady(); });
    if (stop_) return;
    TakenEvent taken;
    TakeOne(&taken);
    busy_ = true;
    lock.unlock();
    Call(taken);
    taken = TakenEvent();
    lock.lock();
    busy_ = false;
    ready_.notify_all();
  }
}

void CallbackDispatcher::DrainHere() {
  while (true) {
    TakenEvent taken;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!HasReady()) return;
      TakeOne(&taken);
    }
    Call(taken);
  }
}

bool CallbackDispatcher::WaitIdle(const WaitDeadline& deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return deadline.Wait(&ready_, &lock, [this] { return !HasReady() && !busy_; });
}

void CallbackDispatcher::Call(const TakenEvent& taken) {
  Outbox* outbox = taken.outbox.get();
  if (taken.wake) outbox->waker->Wake();
  const int64_t start_ns = clock_->NowNs();
  calling_thread_.store(std::this_thread::get_id());
  try {
    outbox->handler.call(outbox->handler.host, taken.View());
  } catch (...) {
    WholeOf(taken.outbox)->callback_threw.store(true);
    outbox->waker->Wake();
  }
  calling_thread_.store(std::thread::id());
  const int64_t end_ns = clock_->NowNs();
  callback_ns_total_.fetch_add(static_cast<uint64_t>(end_ns - start_ns), std::memory_order_relaxed);
  if (!trace_->on()) return;
  TraceSpan span;
  span.name = "callback";
  span.role = "delivery";
  span.begin_ns = start_ns;
  span.end_ns = end_ns;
  span.args[0] = {"request", static_cast<int64_t>(outbox->id)};
  trace_->Add({span});
}

}  // namespace llm
