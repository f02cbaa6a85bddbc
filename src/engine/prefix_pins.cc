// A pin is made by a request that computes the prefix, generates nothing, and leaves its blocks
// held.
#include "src/engine/prefix_pins.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/engine.h"

namespace llm {

PrefixPins::PrefixPins() {
  live_.reserve(Scheduler::kMaxPins);
  unpinned_.reserve(Scheduler::kMaxPins);
  taken_.reserve(Scheduler::kMaxPins);
}

bool PrefixPins::Grant(uint64_t pin_id, const PinTicket& ticket) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ticket.abandoned || live_.size() + unpinned_.size() >= Scheduler::kMaxPins) return false;
  live_.push_back(pin_id);
  return true;
}

bool PrefixPins::UnpinLocked(uint64_t pin_id) {
  const auto found = std::find(live_.begin(), live_.end(), pin_id);
  if (found == live_.end()) return false;
  live_.erase(found);
  unpinned_.push_back(pin_id);
  return true;
}

absl::Status PrefixPins::Unpin(uint64_t pin_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (UnpinLocked(pin_id)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("unpin: there is no pin ", pin_id));
}

void PrefixPins::Abandon(uint64_t pin_id, PinTicket* ticket) {
  std::lock_guard<std::mutex> lock(mutex_);
  ticket->abandoned = true;
  UnpinLocked(pin_id);
}

bool PrefixPins::Apply(Scheduler* scheduler) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    unpinned_.swap(taken_);
  }
  for (const uint64_t pin_id : taken_) scheduler->UnpinPrefix(pin_id);
  const bool any = !taken_.empty();
  taken_.clear();
  return any;
}

absl::StatusOr<uint64_t> Engine::PinPrefix(RequestSpec prefix) {
  const CallCount::Scope inside(&calls_);
  LLM_RETURN_IF_ERROR(CheckMayWait("prefix"));
  prefix.pin = std::make_shared<PinTicket>();
  uint64_t id = 0;
  LLM_RETURN_IF_ERROR(SubmitAndWait(&prefix, &id));
  return id;
}

absl::Status Engine::UnpinPrefix(uint64_t pin_id) {
  LLM_RETURN_IF_ERROR(queue_.CheckOpen());
  LLM_RETURN_IF_ERROR(loop_.pins()->Unpin(pin_id));
  queue_.waker()->Wake();
  return absl::OkStatus();
}

}  // namespace llm
