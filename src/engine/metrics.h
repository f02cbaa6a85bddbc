// Counters of an engine, as one consistent copy.
#pragma once

#include <cstdint>

#include "src/scheduler/scheduler.h"

namespace llm {

// Written by the engine thread.
struct StepCounters {
  uint64_t steps_total = 0;
  uint64_t failed_steps_total = 0;
  uint64_t scheduled_tokens_total = 0;
  uint64_t computed_tokens_total = 0;
  uint64_t generated_tokens_total = 0;
  uint64_t finished_requests_total = 0;
  uint64_t cancelled_requests_total = 0;
  uint64_t deadline_requests_total = 0;
  uint64_t failed_requests_total = 0;
  uint64_t queue_ns_total = 0;
  uint64_t ttft_ns_total = 0;
  uint64_t ttft_requests_total = 0;
  uint64_t step_ns_total = 0;
  uint64_t paused_current = 0;
  uint64_t event_bytes_current = 0;
};

struct EngineMetrics {
  bool healthy = true;
  StepCounters step;
  SchedulerCounters scheduler;
  uint64_t submitted_requests_total = 0;
  uint64_t rejected_requests_total = 0;
  uint64_t callback_ns_total = 0;
  uint64_t total_blocks_current = 0;
  uint64_t kv_bytes_current = 0;
  uint64_t memory_bytes_current = 0;
};

}  // namespace llm
