// What callers are told at submit about time: that a deadline cannot be met, and when to try again.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/engine/engine.h"

namespace llm {
namespace {

// Rounded up: 0 would read as at once. Below 10 ms a millisecond would hide what is compared.
std::string TimeText(int64_t ns) {
  if (ns < 10'000) return absl::StrCat(std::max<int64_t>(1, ns), " ns");
  if (ns < 10'000'000) return absl::StrCat((ns + 999) / 1000, " us");
  return absl::StrCat((ns + 999'999) / 1'000'000, " ms");
}

}  // namespace

ForecastQuery Engine::NewForecast() const {
  ForecastQuery query;
  query.cost = loop_.published_cost();
  query.max_step_tokens = options_.max_step_tokens;
  query.step_ns = options_.step_ns;
  query.now_ns = parts_.clock->NowNs();
  const RequestQueue::Backlog backlog = queue_.backlog();
  query.requests_ahead = backlog.requests;
  query.tokens_ahead = backlog.prompt_tokens;
  return query;
}

// Where nothing ran for a while, what steps cost may have changed, and only a step can tell:
// whoever comes then is let in.
bool Engine::IsStale(int64_t now_ns, const FirstTokenForecast& forecast) const {
  constexpr int64_t kMaxAgeNs = 1'000'000'000;
  const bool idle = forecast.next_end_ns == 0 && forecast.waiting_ahead == 0;
  return idle && now_ns - loop_.last_step_ns() > kMaxAgeNs;
}

absl::Status Engine::CheckDeadlines(Request* request) const {
  const int64_t first_ns = request->first_token_deadline_ns;
  const int64_t completion_ns = request->completion_deadline_ns;
  if (first_ns == 0 && completion_ns == 0) return absl::OkStatus();
  ForecastQuery query = NewForecast();
  query.request = request;
  const FirstTokenForecast forecast = parts_.scheduler->Forecast(query);
  request->first_token_cost_ns = forecast.alone_ns;
  const bool by_first = first_ns != 0 && (completion_ns == 0 || first_ns <= completion_ns);
  const int64_t deadline_ns = by_first ? first_ns : completion_ns;
  const int64_t late_ns = query.now_ns + forecast.total_ns - deadline_ns;
  if (!options_.refuse_late || late_ns <= 0 || IsStale(query.now_ns, forecast)) {
    return absl::OkStatus();
  }
  const int64_t spare_ns = deadline_ns - query.now_ns - forecast.alone_ns;
  return absl::DeadlineExceededError(absl::StrCat(
      by_first ? "first_token_deadline_ns" : "completion_deadline_ns", ": ",
      TimeText(deadline_ns - request->arrival_ns), "; the first token is predicted in ",
      TimeText(forecast.total_ns), ", behind ", forecast.waiting_ahead,
      " requests that wait, and would take ", TimeText(forecast.alone_ns), " alone",
      spare_ns >= 0 ? absl::StrCat("; submit again in ", TimeText(late_ns)) : ""));
}

absl::Status Engine::TellWhenToRetry(const absl::Status& full) const {
  const int64_t end_ns = parts_.scheduler->Forecast(NewForecast()).next_end_ns;
  if (end_ns == 0) return full;
  return absl::Status(full.code(),
                      absl::StrCat(full.message(), ", expected in ", TimeText(end_ns)));
}

}  // namespace llm
