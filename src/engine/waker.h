// Wakes the engine thread: a binary semaphore, so that a wake before the wait is not lost.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "src/engine/wait_deadline.h"

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

  // Returns after a Wake since the last Wait, or after `timeout_ns` (< 0 or beyond a century:
  // never).
  void Wait(int64_t timeout_ns) {
    std::unique_lock<std::mutex> lock(mutex_);
    WaitDeadline(timeout_ns).Wait(&wake_, &lock, [this] { return signalled_; });
    signalled_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool signalled_ = false;
};

}  // namespace llm
