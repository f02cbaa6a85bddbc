// Wakes the engine thread: a binary semaphore, so that a wake before the wait is not lost.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace llm {

class Waker {
 public:
  void Wake() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      signalled_ = true;
    }
    wake_.notify_one();
  }

  // Returns after a Wake since the last Wait, or after `timeout_ns` (< 0: never).
  void Wait(int64_t timeout_ns) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto signalled = [this] { return signalled_; };
    if (timeout_ns < 0) {
      wake_.wait(lock, signalled);
    } else {
      wake_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), signalled);
    }
    signalled_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool signalled_ = false;
};

}  // namespace llm
