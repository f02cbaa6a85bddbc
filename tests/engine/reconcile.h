// Sums over requests equal the engine's totals.
#pragma once

#include <vector>

#include "src/engine/events.h"
#include "src/engine/metrics.h"
#include "src/engine/step_log.h"

namespace llm {

// Queue, prefill, stall, decode and delivery are the whole time.
void ExpectWholeTime(const RequestStats& stats);
// The first token came where prefill ended. Of a choice, or a request without choices: of several,
// the first token and the times belong to different ones.
void ExpectFirstTokenTime(const RequestStats& stats);

// `finished`: the stats of every request that the engine has finished.
void ExpectReconciled(const std::vector<RequestStats>& finished, const EngineMetrics& metrics);

// The rings tell the same as the totals, where they still hold everything.
void ExpectLogReconciled(const StepLog& log, const EngineMetrics& metrics);

}  // namespace llm
