// Decides when a pool's caller works alone: a worker that another program keeps off its core in the
// middle of a task holds up all others for a time slice, thousands of times as long as the task.
#pragma once

#include <algorithm>
#include <cstdint>

namespace llm {

class CrowdGuard {
 public:
  // Waits that are shorter say nothing, so that nobody has to measure them.
  static constexpr int64_t kMinWaitNs = 500'000;
  static constexpr int64_t kFirstAloneNs = 10'000'000;
  static constexpr int64_t kMostAloneNs = 320'000'000;
  // Without a stall for so long after working alone, the next one is a new beginning.
  static constexpr int64_t kCalmNs = 100'000'000;

  // Whether alone_until_ns() has to be asked.
  bool crowded() const { return alone_until_ns_ != 0; }
  int64_t alone_until_ns() const { return alone_until_ns_; }
  void EndAlone() { alone_until_ns_ = 0; }

  // The caller waited `wait_ns`, at least kMinWaitNs, in which the workers ran for `ran_ns` in sum.
  void AddWait(int64_t now_ns, int64_t wait_ns, int64_t ran_ns) {
    if (wait_ns < kMinWaitNs || ran_ns >= wait_ns / 2) return;  // they had work
    const bool again = last_end_ns_ != 0 && now_ns - last_end_ns_ < kCalmNs;
    alone_ns_ = again ? std::min(2 * alone_ns_, kMostAloneNs) : kFirstAloneNs;
    last_end_ns_ = alone_until_ns_ = now_ns + alone_ns_;
  }

 private:
  int64_t alone_ns_ = 0;
  int64_t alone_until_ns_ = 0;
  int64_t last_end_ns_ = 0;  // of the latest time alone
};

}  // namespace llm
