// A request's prefix on its way back from the second tier.
#pragma once

#include "src/cache/eviction_listener.h"
#include "src/scheduler/adoption.h"

namespace llm {

// Of one sequence, which outlives it.
struct SpillReturn {
  PrefixPlace place;
  Adoption adoption;
  int num_attempts = 0;
};

}  // namespace llm
