// The queue ahead and the request's own prompt under the cost model, in closed form but for the
// places that running requests give up. Reads nothing that changes outside the scheduler's calls.
#include "src/scheduler/forecast.h"

#include <algorithm>
#include <cmath>

#include "src/base/bound.h"
#include "src/scheduler/place_forecast.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {
namespace {

int64_t Whole(double ns) { return static_cast<int64_t>(std::min(ns, 1e18)); }

// Chunks that a number of tokens is computed in.
double Chunks(double tokens, double chunk_tokens) { return std::ceil(tokens / chunk_tokens); }

}  // namespace

// What a new request finds: the decodes that each step holds, the prefills that go ahead of it or
// beside it, and who runs or waits before it.
struct SchedulerImpl::Backlog {
  StepWork decodes;    // of a step
  int64_t aim_ns = 0;  // of the tightest token gap among them; 0: none
  struct Prefill {
    int32_t begin = 0;
    int32_t length = 0;
  };
  std::vector<Prefill> prefills;
  StepWork all_prefills;
  std::vector<PlaceHolder> running;
  std::vector<PlaceHolder> waiting;       // in scheduling order
  std::vector<Prefill> waiting_prefills;  // of those

  void AddPrefill(const Prefill& prefill, const LayerWindows& windows) {
    prefills.push_back(prefill);
    all_prefills = all_prefills + windows.Chunk(prefill.begin, prefill.length);
  }
};

// `alone_ns`: as FirstTokenForecast has it, of `request`.
SchedulerImpl::Backlog SchedulerImpl::BacklogAhead(const Request* request, int64_t alone_ns) const {
  Backlog backlog;
  for (const Sequence* sequence : running_) {
    const int32_t begin = sequence->num_computed_tokens;
    // A committed step has given it a token that is not computed yet.
    const int32_t known = std::max(sequence->planned_tokens, begin + 1);
    const int32_t expected = ExpectedTokens(*sequence, known - sequence->num_prompt_tokens());
    backlog.running.push_back({.steps = static_cast<double>(std::max(1, expected - known)),
                               .is_long = CountsAsLong(known)});
    if (known - begin > 1) {
      backlog.AddPrefill({begin, known - begin}, windows_);
      continue;
    }
    backlog.decodes = backlog.decodes + windows_.Chunk(begin, 1);
    backlog.aim_ns = TighterBound(backlog.aim_ns, GapAimNs(*sequence));
  }
  for (const Sequence* sequence : waiting_) {
    if (request != nullptr && !GoesBefore(*sequence, *request, alone_ns)) break;
    const int32_t tokens = sequence->planned_tokens;
    const int32_t expected = ExpectedTokens(*sequence, tokens - sequence->num_prompt_tokens());
    backlog.waiting.push_back({.steps = static_cast<double>(std::max(1, expected - tokens)),
                               .is_long = CountsAsLong(tokens)});
    backlog.waiting_prefills.push_back({0, tokens});
  }
  return backlog;
}

// Tokens of prefills that a step takes beside the decodes.
double SchedulerImpl::ForecastChunk(const ForecastQuery& query, const Backlog& backlog,
                                    const StepWork& own) const {
  const double most = std::max(1.0, query.max_step_tokens - backlog.decodes.decode_rows);
  const int64_t bound_ns = TighterBound(query.step_ns, backlog.aim_ns);
  StepWork prefill = backlog.all_prefills + own;
  if (bound_ns == 0 || prefill.prefill_tokens == 0) return most;
  prefill.decode_rows = prefill.decode_keys = 0;  // a prompt of one token
  const double token_ns =
      (query.cost.PredictNs(prefill) - query.cost.fixed) / prefill.prefill_tokens;
  const double caution = backlog.aim_ns != 0 ? query.cost.caution : 1;
  const double left_ns =
      static_cast<double>(bound_ns) / caution - query.cost.PredictNs(backlog.decodes);
  const double least = backlog.aim_ns != 0 ? kLeastUnderTarget : kLeastTokens;
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

// Steps until there is a place for `request`. Those that get one before it put their prefills ahead
// of it; long ones that it passes do not.
double SchedulerImpl::TakePlaces(const ForecastQuery& query, Backlog* backlog) const {
  std::vector<PlaceHolder> waiting = backlog->waiting;
  double sum = 0;
  for (const PlaceHolder& one : backlog->running) sum += one.steps;
  for (const PlaceHolder& one : waiting) sum += one.steps;
  const size_t known = backlog->running.size() + waiting.size();
  const double mean = known > 0 ? sum / static_cast<double>(known) : 1;
  waiting.resize(waiting.size() + static_cast<size_t>(query.requests_ahead), {.steps = mean});
  const auto tokens = static_cast<int32_t>(query.request->prompt.size());
  waiting.push_back({.is_long = CountsAsLong(tokens)});
  PlaceLimits limits;
  limits.places = blocked_by_room_ ? std::max<size_t>(1, running_.size())
                                   : static_cast<size_t>(options_.max_sequences);
  limits.long_places = static_cast<size_t>(std::max(1, options_.max_long_sequences));
  const PlaceForecast places = ForecastPlace(limits, backlog->running, waiting);
  for (size_t i = 0; i < backlog->waiting.size(); ++i) {
    if (places.started[i]) backlog->AddPrefill(backlog->waiting_prefills[i], windows_);
  }
  return places.steps;
}

FirstTokenForecast SchedulerImpl::Forecast(const ForecastQuery& query) const {
  FirstTokenForecast forecast;
  StepWork own;
  double own_tokens = 0;
  if (query.request != nullptr) {
    const auto tokens = static_cast<int32_t>(query.request->prompt.size());
    const int32_t cached = CachedTokens(*query.request);
    own = windows_.Chunk(cached, tokens - cached);
    own_tokens = tokens - cached;
    forecast.alone_ns = Whole(query.cost.PredictNs(own) +
                              query.cost.fixed * (Chunks(own_tokens, query.max_step_tokens) - 1));
  }
  Backlog backlog = BacklogAhead(query.request, forecast.alone_ns);
  const double decode_ns = query.cost.PredictNs(backlog.decodes);
  if (!backlog.running.empty()) {
    const auto first = std::min_element(
        backlog.running.begin(), backlog.running.end(),
        [](const PlaceHolder& a, const PlaceHolder& b) { return a.steps < b.steps; });
    forecast.next_end_ns = Whole(first->steps * decode_ns);
  }
  if (query.request == nullptr) return forecast;
  const double place_steps = TakePlaces(query, &backlog);
  const double chunk = ForecastChunk(query, backlog, own);
  StepWork ahead = place_steps > 0 ? backlog.all_prefills
                                   : WorkAhead(backlog, static_cast<int32_t>(own_tokens), chunk);
  ahead.prefill_tokens += static_cast<double>(query.tokens_ahead);
  const double steps =
      std::max(place_steps + Chunks(own_tokens, chunk),
               Chunks(ahead.prefill_tokens + ahead.decode_rows + own_tokens, chunk));
  const double prefill_ns = query.cost.PredictNs(ahead + own) - query.cost.fixed;
  // The step that runs now is over soon.
  const double elapsed_ns =
      plan_outstanding_ ? static_cast<double>(std::max<int64_t>(0, query.now_ns - planned_at_ns_))
                        : 0;
  // The step behind it may have begun too, unless the runner had a reason of its own: a decode.
  const double begun_ns = looked_ahead_ ? decode_ns : 0;
  const double total_ns =
      begun_ns + steps * decode_ns + prefill_ns - std::min(elapsed_ns, decode_ns + prefill_ns);
  forecast.total_ns = std::max(forecast.alone_ns, Whole(total_ns));
  forecast.waiting_ahead = static_cast<int64_t>(backlog.waiting.size()) + query.requests_ahead;
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
