// Lets one thread at a time run steps; others are refused or wait.
#pragma once

#include <condition_variable>
#include <mutex>

#include "src/engine/wait_deadline.h"

namespace llm {

class StepGate {
 public:
  // False while someone is inside.
  bool TryEnter() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (inside_) return false;
    inside_ = true;
    return true;
  }
  // False when the deadline came first.
  bool Enter(const WaitDeadline& deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!deadline.Wait(&left_, &lock, [this] { return !inside_; })) return false;
    inside_ = true;
    return true;
  }
  void Leave() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      inside_ = false;
    }
    left_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  bool inside_ = false;
};

}  // namespace llm
