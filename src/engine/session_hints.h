// What the host says about sessions, on its way from any thread to the next step.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "src/cache/eviction_order.h"
#include "src/scheduler/scheduler.h"

namespace llm {

class SessionHints {
 public:
  // Waiting for one step. Steps follow at once unless the host drives them.
  static constexpr size_t kMaxPending = 4096;

  SessionHints();

  // RESOURCE_EXHAUSTED beyond kMaxPending: nothing is lost but order of eviction.
  absl::Status Push(uint64_t session_id, SessionHint hint);
  // Engine thread. Hands them over in the order of Push; false when there were none. Allocates
  // nothing.
  bool Apply(Scheduler* scheduler);

 private:
  struct Pending {
    uint64_t session_id = 0;
    SessionHint hint = SessionHint::kNone;
  };

  std::mutex mutex_;
  std::vector<Pending> pending_;
  std::vector<Pending> taken_;  // the engine thread's
};

}  // namespace llm
