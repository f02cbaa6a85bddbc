// Two arrays that take turns, so that the lock is held for a swap alone.
#include "src/engine/session_hints.h"

#include "absl/strings/str_cat.h"

namespace llm {

SessionHints::SessionHints() {
  pending_.reserve(kMaxPending);
  taken_.reserve(kMaxPending);
}

absl::Status SessionHints::Push(uint64_t session_id, SessionHint hint) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (pending_.size() == kMaxPending) {
    return absl::ResourceExhaustedError(
        absl::StrCat("session ", session_id, ": ", kMaxPending, " hints wait for a step"));
  }
  pending_.push_back({session_id, hint});
  return absl::OkStatus();
}

bool SessionHints::Apply(Scheduler* scheduler) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    pending_.swap(taken_);
  }
  for (const Pending& hint : taken_) scheduler->HintSession(hint.session_id, hint.hint);
  const bool any = !taken_.empty();
  taken_.clear();
  return any;
}

}  // namespace llm
