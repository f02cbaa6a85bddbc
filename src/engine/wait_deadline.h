// A host's timeout as a point in time: negative or very long means for ever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace llm {

class WaitDeadline {
 public:
  explicit WaitDeadline(int64_t timeout_ns) {
    // A century: adding more to the clock could overflow it.
    constexpr int64_t kForeverNs = int64_t{100} * 365 * 24 * 3600 * 1'000'000'000;
    if (timeout_ns < 0 || timeout_ns > kForeverNs) return;
    until_ = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  }

  // Waits for `ready` on `condition`; false when the deadline came first.
  template <typename Ready>
  bool Wait(std::condition_variable* condition, std::unique_lock<std::mutex>* lock,
            Ready ready) const {
    if (!until_.has_value()) {
      condition->wait(*lock, ready);
      return true;
    }
    return condition->wait_until(*lock, *until_, ready);
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> until_;
};

}  // namespace llm
