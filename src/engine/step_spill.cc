// What the second tier holds comes back before the requests that want it are planned: a slice
// between two steps, while others pass them.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "src/engine/step_loop.h"

namespace llm {
namespace {

// Requests of which a step may admit several: more would only hold blocks that others need.
constexpr size_t kMostLookedUp = 8;

}  // namespace

// Each is looked up once until it is preempted. Who shares a prefix with one that is on its way
// waits for it, and is looked up then.
void StepLoop::ReturnSpilled(const StepLimit& limit) {
  if (options_.spill == nullptr) return;
  options_.spill->BeginStep();
  slice_left_ = options_.slice_bytes;
  for (const std::unique_ptr<ActiveRequest>& request : active_) {
    if (request->spill_return != nullptr) BringBack(request.get());
  }
  for (Sequence* next : scheduler_->NextToStart(limit, kMostLookedUp)) {
    ActiveRequest* request = RequestOf(next);
    if (request->awaits_prefix || request->spill_looked_up == request->stats.num_preemptions) {
      continue;
    }
    auto back = std::make_unique<SpillReturn>();
    back->place = scheduler_->PlaceOf(*request);
    back->adoption.request = &request->request;
    request->awaits_prefix = IsOnItsWay(back->place);
    if (request->awaits_prefix) continue;
    request->spill_looked_up = request->stats.num_preemptions;
    request->spill_return = std::move(back);
    BringBack(request);
  }
}

void StepLoop::BringBack(ActiveRequest* request) {
  const uint64_t read_before = options_.spill->counters().read_bytes_total;
  request->awaits_prefix = !options_.spill->Return(request->spill_return.get(), *request, cost_,
                                                   scheduler_, BlocksOfSlice());
  const uint64_t read = options_.spill->counters().read_bytes_total - read_before;
  slice_left_ -= std::min(slice_left_, read);
  if (!request->awaits_prefix) EndReturn(request);
}

// Those that waited for it are looked up when they may start.
void StepLoop::EndReturn(ActiveRequest* request) {
  scheduler_->DropAdoption(&request->spill_return->adoption);
  request->spill_return.reset();
  for (const std::unique_ptr<ActiveRequest>& other : active_) {
    if (other->spill_return == nullptr) other->awaits_prefix = false;
  }
}

bool StepLoop::IsOnItsWay(const PrefixPlace& place) const {
  for (const std::unique_ptr<ActiveRequest>& request : active_) {
    if (request->spill_return == nullptr) continue;
    const PrefixPlace& other = request->spill_return->place;
    const auto first = static_cast<size_t>(std::max(place.cached_blocks, other.cached_blocks));
    if (first < std::min(place.keys.size(), other.keys.size()) &&
        place.keys[first] == other.keys[first]) {
      return true;
    }
  }
  return false;
}

}  // namespace llm
