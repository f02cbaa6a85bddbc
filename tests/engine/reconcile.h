// Sums over requests equal the engine's totals.
#pragma once

#include <vector>

#include "src/engine/events.h"
#include "src/engine/metrics.h"

namespace llm {

// Queue, prefill, stall, decode and delivery are the whole time.
void ExpectWholeTime(const RequestStats& stats);

// `finished`: the stats of every request that the engine has finished.
void ExpectReconciled(const std::vector<RequestStats>& finished, const EngineMetrics& metrics);

}  // namespace llm
