// Callers that wait inside an engine: its Close lets each of them leave before anything goes away.
#pragma once

#include <condition_variable>
#include <mutex>

namespace llm {

class CallCount {
 public:
  class Scope {
   public:
    explicit Scope(CallCount* calls) : calls_(calls) {
      std::lock_guard<std::mutex> lock(calls_->mutex_);
      ++calls_->inside_;
    }
    // Under the lock to the end: who waits for it may take the count away.
    ~Scope() {
      std::lock_guard<std::mutex> lock(calls_->mutex_);
      if (--calls_->inside_ == 0) calls_->left_.notify_all();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallCount* const calls_;
  };

  void WaitForNone() {
    std::unique_lock<std::mutex> lock(mutex_);
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  int inside_ = 0;
};

}  // namespace llm
