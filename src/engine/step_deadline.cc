// Who waits in vain leaves the queue at once: what it would have taken goes to those that can still
// be served in time.
#include "src/engine/step_loop.h"

namespace llm {

// What it was predicted to take alone may have become less, since others have computed its prefix
// meanwhile: it is looked up again before the request is given up.
bool StepLoop::IsHopeless(ActiveRequest* request, int64_t now_ns) const {
  const int64_t deadline_ns = request->request.first_token_deadline_ns;
  if (!options_.refuse_late || deadline_ns == 0 || !request->scheduled ||
      request->status != SequenceStatus::kWaiting) {
    return false;
  }
  if (now_ns + request->first_token_cost_ns <= deadline_ns) return false;
  ForecastQuery query;
  query.request = &request->request;
  query.cost = cost_.coefficients();
  query.max_step_tokens = options_.max_step_tokens;
  query.step_ns = options_.step_ns;
  query.now_ns = now_ns;
  request->first_token_cost_ns = scheduler_->Forecast(query).alone_ns;
  return now_ns + request->first_token_cost_ns > deadline_ns;
}

}  // namespace llm
