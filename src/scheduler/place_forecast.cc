// Plays through who ends and who starts, without the steps between.
#include "src/scheduler/place_forecast.h"

#include <algorithm>
#include <queue>

namespace llm {
namespace {

struct End {
  double step = 0;
  bool is_long = false;
  bool operator<(const End& other) const { return step > other.step; }  // the earliest on top
};

// From `index` on, the first that is long, or is not.
size_t Next(absl::Span<const PlaceHolder> waiting, size_t index, bool is_long) {
  while (index < waiting.size() && waiting[index].is_long != is_long) ++index;
  return index;
}

}  // namespace

PlaceForecast ForecastPlace(const PlaceLimits& limits, absl::Span<const PlaceHolder> running,
                            absl::Span<const PlaceHolder> waiting) {
  PlaceForecast forecast;
  forecast.started.resize(waiting.size());
  std::priority_queue<End> ends;
  size_t num_long = 0;
  const auto start = [&](const PlaceHolder& one) {
    ends.push({forecast.steps + one.steps, one.is_long});
    if (one.is_long) ++num_long;
  };
  for (const PlaceHolder& one : running) start(one);
  size_t next_short = Next(waiting, 0, false);
  size_t next_long = Next(waiting, 0, true);
  while (!forecast.started.back()) {
    const bool long_may = num_long < limits.long_places;
    const size_t next = long_may ? std::min(next_short, next_long) : next_short;
    if (next == waiting.size() || ends.size() >= limits.places) {
      forecast.steps = ends.top().step;
      if (ends.top().is_long) --num_long;
      ends.pop();
      continue;
    }
    start(waiting[next]);
    forecast.started[next] = true;
    size_t& cursor = waiting[next].is_long ? next_long : next_short;
    cursor = Next(waiting, next + 1, waiting[next].is_long);
  }
  return forecast;
}

}  // namespace llm
