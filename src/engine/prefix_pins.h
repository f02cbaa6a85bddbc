// Which prefixes are pinned, as callers know it; the scheduler holds their blocks.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "src/scheduler/scheduler.h"

namespace llm {

// A pin that is being made: shared by its caller, who may give up, and the engine thread.
struct PinTicket {
  bool abandoned = false;  // under the mutex of PrefixPins
};

// A pin is live from Grant to Unpin, and then waits for the next step, which gives its blocks back.
class PrefixPins {
 public:
  PrefixPins();

  // Engine thread. False: the caller has given up, or Scheduler::kMaxPins are live or wait.
  bool Grant(uint64_t pin_id, const PinTicket& ticket);
  // NOT_FOUND: no live pin.
  absl::Status Unpin(uint64_t pin_id);
  // No caller will ever know the pin: unpins it, now or when it would be granted.
  void Abandon(uint64_t pin_id, PinTicket* ticket);
  // Engine thread. False when nothing was unpinned. Allocates nothing.
  bool Apply(Scheduler* scheduler);

 private:
  bool UnpinLocked(uint64_t pin_id);

  std::mutex mutex_;
  std::vector<uint64_t> live_;
  std::vector<uint64_t> unpinned_;
  std::vector<uint64_t> taken_;  // the engine thread's
};

}  // namespace llm
