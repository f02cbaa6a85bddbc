// A host's clock as an engine's: monotonic and positive, whatever the host returns.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "src/base/clock.h"
#include "src/base/hook_fault.h"

namespace llm {

class HookClock final : public Clock {
 public:
  using Now = int64_t (*)(void* user_data);

  // `fault` may be null and outlives the clock.
  HookClock(Now now, void* user_data, HookFault* fault)
      : now_(now), user_data_(user_data), fault_(fault) {}

  int64_t NowNs() const override {
    int64_t now_ns = 0;
    try {
      now_ns = now_(user_data_);
    } catch (...) {
      if (fault_ != nullptr) fault_->Record("the host's clock threw an exception");
    }
    now_ns = std::min(now_ns, kMaxNs);
    int64_t latest_ns = latest_ns_.load(std::memory_order_relaxed);
    while (now_ns > latest_ns && !latest_ns_.compare_exchange_weak(latest_ns, now_ns)) {
    }
    return std::max(now_ns, latest_ns);
  }

 private:
  // Differences and sums of two times stay in range.
  static constexpr int64_t kMaxNs = std::numeric_limits<int64_t>::max() / 4;

  const Now now_;
  void* const user_data_;
  HookFault* const fault_;
  mutable std::atomic<int64_t> latest_ns_{1};  // 0 means "never" in statistics
};

}  // namespace llm
