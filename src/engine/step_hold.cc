// Holding a batch: who comes to an idle engine waits a moment for others to come along.
#include <algorithm>
#include <limits>

#include "src/engine/step_loop.h"

namespace llm {
namespace {

// For its deadlines: twice what it is predicted to take is kept, since waking takes time too, and a
// prediction may be short. Without a prediction it starts at once.
int64_t LatestStartNs(const Request& request) {
  int64_t latest_ns = std::numeric_limits<int64_t>::max();
  for (const int64_t deadline_ns :
       {request.first_token_deadline_ns, request.completion_deadline_ns}) {
    if (deadline_ns == 0) continue;
    const int64_t cost_ns = request.first_token_cost_ns;
    latest_ns = std::min(latest_ns, cost_ns == 0 ? request.arrival_ns : deadline_ns - 2 * cost_ns);
  }
  return latest_ns;
}

}  // namespace

// Only while nobody has begun, so that no token that could be computed is late, and while the step
// would stay less than half full.
int64_t StepLoop::HoldUntilNs() const {
  if (options_.hold_ns == 0) return 0;
  int64_t first_ns = 0;
  int64_t latest_ns = std::numeric_limits<int64_t>::max();
  int64_t tokens = 0;
  for (const auto& request : active_) {
    if (!request->open() || request->paused) continue;
    if (request->stats.first_scheduled_ns != 0 || request->moves()) return 0;
    const int64_t arrival_ns = request->request.arrival_ns;
    first_ns = tokens == 0 ? arrival_ns : std::min(first_ns, arrival_ns);
    tokens += request->num_tokens();
    latest_ns = std::min(latest_ns, LatestStartNs(request->request));
  }
  if (tokens == 0 || tokens >= options_.max_step_tokens / 2) return 0;
  const int64_t until_ns = std::min(first_ns + options_.hold_ns, latest_ns);
  return clock_->NowNs() < until_ns ? until_ns : 0;
}

}  // namespace llm
