// What became of the steps that a runner has begun before they were asked for.
#pragma once

#include <cstdint>

namespace llm {

struct AheadCounters {
  uint64_t steps_total = 0;     // that were then asked for
  uint64_t dropped_total = 0;   // that were not
  uint64_t failures_total = 0;  // that could not be begun: they are done when they are asked for
};

}  // namespace llm
