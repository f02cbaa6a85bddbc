// When a request that comes now would get its first token.
#pragma once

#include <cstdint>

#include "src/scheduler/step_cost_model.h"
#include "src/sequence/request.h"

namespace llm {

struct ForecastQuery {
  const Request* request = nullptr;  // null: only next_end_ns is asked for
  StepCostModel::Coefficients cost;
  int32_t max_step_tokens = 0;
  int64_t step_ns = 0;  // as StepLimit::step_ns
  int64_t now_ns = 0;
  // Requests that the scheduler has not been given yet, and their tokens: all go first.
  int64_t requests_ahead = 0;
  int64_t tokens_ahead = 0;
};

// From now on. All 0 while nothing is known of what steps cost.
struct FirstTokenForecast {
  int64_t alone_ns = 0;     // if nothing else were there: what its tokens take that are not cached
  int64_t total_ns = 0;     // behind all that goes first
  int64_t next_end_ns = 0;  // when some running request is expected to end; 0: none runs
  int64_t waiting_ahead = 0;
};

}  // namespace llm
