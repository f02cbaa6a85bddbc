// The queue ahead and the request's own prompt under the cost model, in closed form but for the
// places that running requests give up. Reads nothing that changes outside the scheduler's calls.
#include "src/scheduler/forecast.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "src/scheduler/scheduler_impl.h"

namespace llm {
namespace {

int64_t Whole(double ns) { return static_cast<int64_t>(std::min(ns, 1e18)); }

// Chunks that a number of tokens is computed in.
double Chunks(double tokens, double chunk_tokens) { return std::ceil(tokens / chunk_tokens); }

}  // namespace

// What a new request finds: the decodes that each step holds, the prefills that go ahead of it or
// beside it, and when requests that run will give up their places.
struct SchedulerImpl::Backlog {
  StepWork decodes;       // of a step
  int64_t target_ns = 0;  // the tightest token gap among them; 0: none
  struct Prefill {
    int32_t begin = 0;
    int32_t length = 0;
  };
  std::vector<Prefill> prefills;
  std::vector<double> running_steps;  // until each ends
  std::vector<double> waiting_steps;  // that each will take, in scheduling order
  StepWork all_prefills;
};

SchedulerImpl::Backlog SchedulerImpl::BacklogAhead(const Request* request) const {
  Backlog backlog;
  for (const Sequence* sequence : running_) {
    const int32_t begin = sequence->num_computed_tokens;
    // A committed step has given it a token that is not computed yet.
    const int32_t known = std::max(sequence->planned_tokens, begin + 1);
    const int32_t expected = ExpectedTokens(*sequence, known - sequence->num_prompt_tokens());
    backlog.running_steps.push_back(std::max(1, expected - known));
    if (known - begin > 1) {
      backlog.prefills.push_back({begin, known - begin});
      continue;
    }
    backlog.decodes = backlog.decodes + windows_.Chunk(begin, 1);
    const int64_t target_ns = sequence->request.token_gap_target_ns;
    if (target_ns == 0) continue;
    if (backlog.target_ns == 0 || target_ns < backlog.target_ns) backlog.target_ns = target_ns;
  }
  for (const Sequence* sequence : waiting_) {
    if (request != nullptr && !GoesBefore(*sequence, *request)) break;
    const int32_t tokens = sequence->planned_tokens;
    const int32_t expected = ExpectedTokens(*sequence, tokens - sequence->num_prompt_tokens());
    backlog.prefills.push_back({0, tokens});
    backlog.waiting_steps.push_back(std::max(1, expected - tokens));
  }
  for (const Backlog::Prefill& prefill : backlog.prefills) {
    backlog.all_prefills = backlog.all_prefills + windows_.Chunk(prefill.begin, prefill.length);
  }
  return backlog;
}

// Tokens of prefills that a step takes beside the decodes.
double SchedulerImpl::ForecastChunk(const ForecastQuery& query, const Backlog& backlog,
                                    const StepWork& own) const {
  const double most = std::max(1.0, query.max_step_tokens - backlog.decodes.decode_rows);
  int64_t bound_ns = query.step_ns;
  if (backlog.target_ns != 0 && (bound_ns == 0 || backlog.target_ns < bound_ns)) {
    bound_ns = backlog.target_ns;
  }
  StepWork prefill = backlog.all_prefills + own;
  if (bound_ns == 0 || prefill.prefill_tokens == 0) return most;
  prefill.decode_rows = prefill.decode_keys = 0;  // a prompt of one token
  const double token_ns =
      (query.cost.PredictNs(prefill) - query.cost.fixed) / prefill.prefill_tokens;
  const double left_ns = static_cast<double>(bound_ns) - query.cost.PredictNs(backlog.decodes);
  const double least = backlog.target_ns != 0 ? kLeastUnderTarget : kLeastTokens;
  if (token_ns <= 0) return most;
  return std::clamp(left_ns / token_ns, std::min(least, most), most);
}

// Prefills share the steps evenly, so that a short one waits for as much of each other one as it
// has itself; where there are too many to share, it waits for all of them, as it does where there
// is no place for it before they have theirs.
StepWork SchedulerImpl::WorkAhead(const Backlog& backlog, int32_t own_tokens,
                                  double chunk_tokens) const {
  if (static_cast<double>(backlog.prefills.size() + 1) > std::max(1.0, chunk_tokens / kTile)) {
    return backlog.all_prefills;
  }
  StepWork work;
  for (const Backlog::Prefill& prefill : backlog.prefills) {
    work = work + windows_.Chunk(prefill.begin, std::min(prefill.length, own_tokens));
  }
  return work;
}

// Steps until there is a place for one more, when each that goes before takes the first that gets
// free.
double SchedulerImpl::StepsUntilPlace(const ForecastQuery& query, const Backlog& backlog) const {
  const size_t places = blocked_by_room_ ? std::max<size_t>(1, running_.size())
                                         : static_cast<size_t>(options_.max_sequences);
  std::priority_queue<double, std::vector<double>, std::greater<>> ends(
      std::greater<>(), std::vector<double>(backlog.running_steps));
  double sum = 0;
  for (const double steps : backlog.running_steps) sum += steps;
  for (const double steps : backlog.waiting_steps) sum += steps;
  const size_t known = backlog.running_steps.size() + backlog.waiting_steps.size();
  const double mean = known > 0 ? sum / static_cast<double>(known) : 1;
  const size_t ahead = backlog.waiting_steps.size() + static_cast<size_t>(query.requests_ahead);
  for (size_t i = 0; i < ahead; ++i) {
    double begin = 0;
    if (ends.size() >= places) {
      begin = ends.top();
      ends.pop();
    }
    ends.push(begin + (i < backlog.waiting_steps.size() ? backlog.waiting_steps[i] : mean));
  }
  return ends.size() >= places ? ends.top() : 0;
}

FirstTokenForecast SchedulerImpl::Forecast(const ForecastQuery& query) const {
  FirstTokenForecast forecast;
  const Backlog backlog = BacklogAhead(query.request);
  const double decode_ns = query.cost.PredictNs(backlog.decodes);
  if (!backlog.running_steps.empty()) {
    const double first =
        *std::min_element(backlog.running_steps.begin(), backlog.running_steps.end());
    forecast.next_end_ns = Whole(first * decode_ns);
  }
  if (query.request == nullptr) return forecast;
  const int32_t tokens = static_cast<int32_t>(query.request->prompt.size());
  const int32_t cached = CachedTokens(*query.request);
  const StepWork own = windows_.Chunk(cached, tokens - cached);
  const double chunk = ForecastChunk(query, backlog, own);
  const double place_steps = StepsUntilPlace(query, backlog);
  StepWork ahead =
      place_steps > 0 ? backlog.all_prefills : WorkAhead(backlog, tokens - cached, chunk);
  ahead.prefill_tokens += static_cast<double>(query.tokens_ahead);
  const double own_tokens = tokens - cached;
  const double steps =
      std::max(place_steps + Chunks(own_tokens, chunk),
               Chunks(ahead.prefill_tokens + ahead.decode_rows + own_tokens, chunk));
  const double prefill_ns = query.cost.PredictNs(ahead + own) - query.cost.fixed;
  // The step that runs now is over soon.
  const double elapsed_ns =
      plan_outstanding_ ? static_cast<double>(std::max<int64_t>(0, query.now_ns - planned_at_ns_))
                        : 0;
  forecast.alone_ns = Whole(query.cost.PredictNs(own) +
                            query.cost.fixed * (Chunks(own_tokens, query.max_step_tokens) - 1));
  const double total_ns =
      steps * decode_ns + prefill_ns - std::min(elapsed_ns, decode_ns + prefill_ns);
  forecast.total_ns = std::max(forecast.alone_ns, Whole(total_ns));
  forecast.waiting_ahead =
      static_cast<int64_t>(backlog.waiting_steps.size()) + query.requests_ahead;
  return forecast;
}

int32_t SchedulerImpl::CachedTokens(const Request& request) const {
  if (!blocks_.prefix_cache_enabled() || !request.use_prefix_cache ||
      request.num_prompt_logprobs >= 0) {
    return 0;
  }
  const PrefixMatch match =
      blocks_.Match(request.cache_salt, request.cache_variant(), request.prompt,
                    static_cast<int32_t>(request.prompt.size()) - 1);
  return match.num_blocks * options_.block_size + match.partial_tokens;
}

}  // namespace llm
