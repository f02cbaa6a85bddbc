// When a place among the running requests gets free for one that comes now.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace llm {

// A request that runs, or waits to.
struct PlaceHolder {
  double steps = 1;  // that it runs from now on, or from when it starts
  bool is_long = false;
};

struct PlaceLimits {
  size_t places = 1;  // at least 1, as the next
  size_t long_places = 1;
};

struct PlaceForecast {
  double steps = 0;           // until the last of those that wait may start
  std::vector<bool> started;  // [waiting]: by then, itself included
};

// Each place goes to the first in `waiting`, in their order, that may start: long ones beyond their
// limit are passed. REQUIRES: somebody waits.
PlaceForecast ForecastPlace(const PlaceLimits& limits, absl::Span<const PlaceHolder> running,
                            absl::Span<const PlaceHolder> waiting);

}  // namespace llm
