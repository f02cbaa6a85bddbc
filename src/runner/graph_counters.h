// What the graphs of a runner's steps did.
#pragma once

#include <cstdint>

namespace llm {

struct GraphCounters {
  uint64_t launches_total = 0;  // steps of decodes that were launched as one graph
  uint64_t recordings_total = 0;
  uint64_t failures_total = 0;  // of recording or launching
};

}  // namespace llm
