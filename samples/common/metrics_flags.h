// --metrics-file, --metrics-socket and --trace, and what they start.
#pragma once

#include <inlay/llm.hpp>
#include <string>

#include "common/flags.h"
#include "common/metrics_export.h"

namespace tools {

struct MetricsFlags {
  std::string file, socket, trace;  // empty: none
};
void AddMetricsFlags(MetricsFlags* flags, FlagTable* table);

// Offers the engine's counters while it lives, and starts the trace that the engine's close writes;
// the engine outlives it.
class MetricsExport {
 public:
  // Exits with a message when it cannot.
  MetricsExport(const MetricsFlags& flags, const inlay::Engine& engine);
  ~MetricsExport() { metrics_export_stop(exporter_); }
  MetricsExport(const MetricsExport&) = delete;
  MetricsExport& operator=(const MetricsExport&) = delete;

 private:
  metrics_export* exporter_ = nullptr;
};

}  // namespace tools
