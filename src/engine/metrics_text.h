// The counters as Prometheus text: vLLM's names where it has the same thing, `inlay:` names else.
#pragma once

#include <cstdint>
#include <string>

#include "src/engine/metrics.h"

namespace llm {

// What does not change while the engine lives.
struct MetricsLabels {
  std::string model_name;
  int32_t block_size = 0;
};

std::string MetricsText(const EngineMetrics& metrics, const MetricsLabels& labels);

}  // namespace llm
