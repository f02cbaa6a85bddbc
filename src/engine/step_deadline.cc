// Deadlines inside the engine's thread. Who waits in vain leaves the queue at once: what it would
// have taken goes to those that can still be served in time.
#include <algorithm>

#include "src/engine/step_loop.h"

namespace llm {
namespace {

bool HasRunningSibling(const Sequence& sequence) {
  return sequence.siblings != nullptr &&
         std::any_of(sequence.siblings->begin(), sequence.siblings->end(),
                     [](const Sequence* one) { return one->status == SequenceStatus::kRunning; });
}

}  // namespace

// What it was predicted to take alone may have become less, since others have computed its prefix
// meanwhile: it is looked up again before the request is given up.
bool StepLoop::IsHopeless(ActiveRequest* request, int64_t now_ns) const {
  const int64_t deadline_ns = request->request.first_token_deadline_ns;
  if (!options_.refuse_late || deadline_ns == 0 || !request->scheduled || request->awaits_prefix ||
      request->status != SequenceStatus::kWaiting) {
    return false;
  }
  if (now_ns + request->first_token_cost_ns <= deadline_ns) return false;
  if (HasRunningSibling(*request)) return false;  // which computes its prompt
  ForecastQuery query;
  query.request = &request->request;
  query.cost = cost_.coefficients();
  query.max_step_tokens = options_.max_step_tokens;
  query.step_ns = options_.step_ns;
  query.now_ns = now_ns;
  request->first_token_cost_ns = scheduler_->Forecast(query).alone_ns;
  return now_ns + request->first_token_cost_ns > deadline_ns;
}

void StepLoop::CountTargets(const ActiveRequest& request, const FinishRecord& finish) {
  const bool good = counters_.targets.Count(request.request, finish);
  ClassCounters::Class* counters = counters_.classes.Of(request.request.request_class);
  ++counters->finished_requests;
  if (good) ++counters->good_requests;
  counters->generated_tokens += static_cast<uint64_t>(finish.stats.generated_tokens);
}

}  // namespace llm
