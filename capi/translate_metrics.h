// EngineMetrics to the structs of the ABI.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "inlay/llm.h"
#include "src/engine/metrics.h"

namespace llm {

llm_metrics_snapshot TranslateMetrics(const EngineMetrics& metrics);
// INVALID_ARGUMENT: no such histogram.
absl::StatusOr<llm_histogram> TranslateHistogram(const EngineMetrics& metrics, uint32_t which);
// INVALID_ARGUMENT: it is not kept of classes.
absl::StatusOr<llm_histogram> TranslateClassHistogram(const EngineMetrics& metrics,
                                                      uint32_t request_class, uint32_t which);

}  // namespace llm
