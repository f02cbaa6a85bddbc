// What the second tier holds comes back just before the requests that want it are planned.
#include <cstddef>

#include "src/engine/step_loop.h"

namespace llm {
namespace {

// Requests of which a step may admit several: more would only hold blocks that others need.
constexpr size_t kMostLookedUp = 8;

}  // namespace

// Each is looked up once until it is preempted.
void StepLoop::ReturnSpilled(const StepLimit& limit) {
  if (options_.spill == nullptr) return;
  for (Sequence* next : scheduler_->NextToStart(limit, kMostLookedUp)) {
    ActiveRequest* request = RequestOf(next);
    if (request->spill_looked_up == request->stats.num_preemptions) continue;
    request->spill_looked_up = request->stats.num_preemptions;
    options_.spill->Return(*request, cost_, scheduler_);
  }
}

void StepLoop::TellSpillFailures() const {
  if (options_.spill == nullptr) return;
  try {
    options_.spill->TellFailures();
  } catch (...) {
    return;  // no log is worth a step
  }
}

}  // namespace llm
