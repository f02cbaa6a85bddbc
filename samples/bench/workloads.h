// What llm-bench measures, and the numbers that come out.
#pragma once

#include <cstdint>

#include "bench_client.h"
#include "bench_flags.h"

namespace bench {

struct Result {
  uint64_t tokens = 0;  // in the measured window: prompt tokens for prefill, else generated ones
  double seconds = 0;   // the window
  double ttft_s =
      0;  // slowest first token of the streams, from submit; `arrival`: of the late prompt
  double total_s = 0;       // first submit to the end of the window
  double median_gap_s = 0;  // between two deliveries of one stream, in the window
  double p99_gap_s = 0;
  double worst_gap_s = 0;
  uint64_t steps = 0;       // about those of the window, and what they read of weights, keys and
  uint64_t bytes_read = 0;  // values, by the engine's arithmetic
};

// What the engine must hold to run it without preemption.
Capacity CapacityFor(const Flags& flags);

// Runs it once. Exits with a message when a request ends badly.
Result RunWorkload(const Flags& flags, Client* client);

// A short request that touches every weight and wakes every thread.
void WarmUp(Client* client);

}  // namespace bench
