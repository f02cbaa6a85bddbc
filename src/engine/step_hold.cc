// Holding a batch: who comes to an idle engine waits a moment for others to come along.
#include <algorithm>

#include "src/engine/step_loop.h"

namespace llm {

// Only while nobody has begun, so that no token that could be computed is late, and while the step
// would stay less than half full.
int64_t StepLoop::HoldUntilNs() const {
  if (options_.hold_ns == 0) return 0;
  int64_t first_ns = 0;
  int64_t tokens = 0;
  for (const auto& request : active_) {
    if (!request->open() || request->paused) continue;
    if (request->stats.first_scheduled_ns != 0) return 0;
    const int64_t arrival_ns = request->request.arrival_ns;
    first_ns = tokens == 0 ? arrival_ns : std::min(first_ns, arrival_ns);
    tokens += request->num_tokens();
  }
  if (tokens == 0 || tokens >= options_.max_step_tokens / 2) return 0;
  const int64_t until_ns = first_ns + options_.hold_ns;
  return clock_->NowNs() < until_ns ? until_ns : 0;
}

}  // namespace llm
