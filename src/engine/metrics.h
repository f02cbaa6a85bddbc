// Counters of an engine, as one consistent copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "src/engine/class_counters.h"
#include "src/engine/histograms.h"
#include "src/engine/open_times.h"
#include "src/engine/request_clock.h"
#include "src/engine/spill_counters.h"
#include "src/engine/step_laps.h"
#include "src/engine/targets.h"
#include "src/runner/ahead_counters.h"
#include "src/runner/graph_counters.h"
#include "src/scheduler/scheduler.h"
#include "src/sequence/stop_criteria.h"

namespace llm {

inline constexpr size_t kNumFinishReasons = static_cast<size_t>(FinishReason::kError) + 1;

// How far a request had come: never scheduled, without a token, or with one.
enum class RequestStage : size_t { kQueue, kPrefill, kDecode };
inline constexpr size_t kNumRequestStages = 3;
inline constexpr const char* kRequestStageNames[kNumRequestStages] = {"queue", "prefill", "decode"};

// Written by the engine thread.
struct StepCounters {
  uint64_t steps_total = 0;
  uint64_t failed_steps_total = 0;
  uint64_t scheduled_tokens_total = 0;
  uint64_t computed_tokens_total = 0;
  uint64_t prompt_tokens_total = 0;  // of requests that got a token
  uint64_t generated_tokens_total = 0;
  uint64_t finished_requests_total = 0;
  uint64_t cancelled_requests_total = 0;
  uint64_t deadline_requests_total = 0;
  uint64_t failed_requests_total = 0;
  RequestTimes request_ns_total;  // of requests that ended
  uint64_t ttft_ns_total = 0;
  uint64_t ttft_requests_total = 0;
  uint64_t step_ns_total = 0;
  uint64_t weight_bytes_read_total = 0;  // predicted, failed steps included, like the next two
  uint64_t kv_bytes_read_total = 0;
  uint64_t kv_bytes_written_total = 0;
  std::array<uint64_t, kNumStepParts> part_ns_total{};
  std::array<uint64_t, kNumFinishReasons> finished_by_reason{};
  std::array<uint64_t, kNumRequestStages> deadlines_by_stage{};
  uint64_t hopeless_requests_total = 0;  // of those in the queue: ended before their deadline
  TargetCounters targets;
  ClassCounters classes;
  Histograms histograms;
  StepCostModel::Coefficients cost;
  StepCostModel::Error cost_error;
  SpillCounters spill;
  GraphCounters graphs;
  AheadCounters ahead;
  uint64_t paused_current = 0;
  uint64_t event_bytes_current = 0;

  // Of all requests, and of those of a class. REQUIRES: one of kClassHistograms.
  void AddClassTime(HistogramId id, uint32_t request_class, int64_t ns) {
    histograms.AddTime(id, ns);
    AddValue(id, CountedNs(ns), classes.Of(request_class)->Of(id));
  }
  uint64_t BusyNs() const {
    return std::accumulate(part_ns_total.begin(), part_ns_total.end(), uint64_t{0});
  }
};

// Requests refused at submit, by the status that they got.
struct RejectCounters {
  uint64_t full = 0;     // RESOURCE_EXHAUSTED
  uint64_t invalid = 0;  // INVALID_ARGUMENT
  uint64_t other = 0;
  uint64_t late = 0;  // DEADLINE_EXCEEDED; part of other

  uint64_t total() const { return full + invalid + other; }
};

struct EngineMetrics {
  bool healthy = true;
  StepCounters step;
  SchedulerCounters scheduler;
  uint64_t submitted_requests_total = 0;
  uint64_t rejected_requests_total = 0;
  RejectCounters rejected;
  uint64_t callback_ns_total = 0;
  uint64_t total_blocks_current = 0;
  uint64_t kv_bytes_current = 0;
  uint64_t memory_bytes_current = 0;
  uint64_t memory_bandwidth_current = 0;  // bytes per second
  uint64_t clock_ns_current = 0;
  OpenTimes times;
};

}  // namespace llm
