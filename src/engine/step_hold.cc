// Holding a batch: who comes to an idle engine waits a moment for others to come along.
#include <algorithm>
#include <limits>

#include "src/engine/step_loop.h"

namespace llm {
namespace {

// On a host's clock that stands still a hold would never end.
constexpr int64_t kMostRealNs = 1'000'000'000;

// Of what its first-token deadline leaves, half at the most is waited away, and twice what the
// token is predicted to take is kept: waking takes time, and a prediction may be short. Whoever has
// none, or states when its end is due, starts at once.
int64_t LatestStartNs(const Request& request) {
  const int64_t deadline_ns = request.first_token_deadline_ns;
  const int64_t cost_ns = request.first_token_cost_ns;
  if (request.completion_deadline_ns != 0) return request.arrival_ns;
  if (deadline_ns == 0) return std::numeric_limits<int64_t>::max();
  if (cost_ns == 0) return request.arrival_ns;
  const int64_t half_ns = (deadline_ns - request.arrival_ns) / 2;
  return std::min(request.arrival_ns + half_ns, deadline_ns - 2 * cost_ns);
}

}  // namespace

int64_t StepLoop::HoldUntilNs() {
  if (options_.hold_ns == 0) return 0;
  const int64_t until_ns = WantedHoldNs();
  const int64_t real_ns = SteadyClock().NowNs();
  if (until_ns == 0 || held_until_ns_ == 0) hold_began_ns_ = real_ns;
  return real_ns - hold_began_ns_ < options_.hold_ns + kMostRealNs ? until_ns : 0;
}

// Only while nobody has begun, so that no token that could be computed is late, and while the step
// would stay less than half full.
int64_t StepLoop::WantedHoldNs() const {
  int64_t first_ns = 0;
  int64_t latest_ns = std::numeric_limits<int64_t>::max();
  int64_t tokens = 0;
  for (const auto& request : active_) {
    if (!request->open() || request->paused) continue;
    if (request->stats.first_scheduled_ns != 0 || request->moves()) return 0;
    if (!request->generates()) return 0;  // its caller waits for it alone
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
