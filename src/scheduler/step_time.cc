// How much of a prefill fits the time of a step.
#include <algorithm>

#include "src/base/bound.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {

int64_t GapAimNs(const Sequence& sequence) {
  constexpr double kAim = 0.9;  // some steps take longer than any term foresees
  const int64_t target_ns = sequence.request.token_gap_target_ns;
  if (target_ns == 0) return 0;
  return std::max<int64_t>(1, static_cast<int64_t>(kAim * static_cast<double>(target_ns)));
}

namespace {

// Beyond so many times the longest prefill that the model knows, it is not believed.
constexpr double kTrusted = 4;

struct TimeBound {
  int64_t ns = 0;          // 0: none
  bool by_target = false;  // somebody waits for the step: few may take longer
};

// A step's time is the gap between two tokens of each decode in it.
TimeBound BoundOf(const StepLimit& limit, const StepPlan& plan) {
  TimeBound bound;
  if (limit.cost == nullptr) return bound;
  bound.ns = limit.step_ns;
  for (const ScheduledChunk& chunk : plan.chunks) {
    const int64_t aim_ns = GapAimNs(*chunk.sequence);
    if (aim_ns == 0 || chunk.sequence->num_generated_tokens() == 0) continue;
    bound.ns = TighterBound(bound.ns, aim_ns);
    bound.by_target = true;
  }
  return bound;
}

bool HasPrefill(const StepPlan& plan) {
  return std::any_of(plan.chunks.begin(), plan.chunks.end(),
                     [](const ScheduledChunk& chunk) { return chunk.length > 1; });
}

}  // namespace

// The largest of [0, most] with which the step is predicted to hold its bound.
int32_t SchedulerImpl::TokensInTime(const Sequence& sequence, const Step& step,
                                    int32_t most) const {
  const TimeBound bound = BoundOf(step.limit, step.plan);
  if (bound.ns == 0) return most;
  const StepCostModel& cost = *step.limit.cost;
  const StepWork planned = windows_.Step(step.plan);
  const double trusted = cost.fitted() ? kTrusted * cost.most_prefill_tokens() : kLeastTokens;
  const double left = trusted - planned.prefill_tokens;
  if (!cost.fitted()) return static_cast<int32_t>(std::clamp(left, 0.0, 1.0 * most));
  int32_t fits = 0;
  int32_t too_many = static_cast<int32_t>(std::clamp(left, 0.0, 1.0 * most)) + 1;
  while (fits + 1 < too_many) {
    const int32_t middle = fits + (too_many - fits) / 2;
    const StepWork chunk = windows_.Chunk(sequence.num_computed_tokens, middle);
    const StepWork work = planned + chunk;
    const double step_ns = bound.by_target ? cost.CautiousNs(work) : cost.PredictNs(work);
    const bool in_time = step_ns <= static_cast<double>(bound.ns);
    (in_time ? fits : too_many) = middle;
  }
  return fits;
}

int32_t SchedulerImpl::LengthInTime(const Sequence& sequence, const Step& step,
                                    int32_t most) const {
  if (most <= 1) return most;
  const int32_t fits = TokensInTime(sequence, step, most);
  if (fits >= most) return most;
  const bool by_target = BoundOf(step.limit, step.plan).by_target;
  const int32_t least = HasPrefill(step.plan) ? 1 : by_target ? kLeastUnderTarget : kLeastTokens;
  const int32_t whole_tiles = fits / kTile * kTile;
  return std::min(most, std::max(whole_tiles, least));
}

bool SchedulerImpl::HasTime(const Sequence& sequence, const Step& step) const {
  if (!HasPrefill(step.plan)) return true;
  const int32_t remaining = sequence.num_tokens() - sequence.num_computed_tokens;
  const int32_t wanted = std::min(remaining, kLeastUnderTarget);
  return TokensInTime(sequence, step, wanted) == wanted;
}

}  // namespace llm
