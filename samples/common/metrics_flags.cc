// Empty paths mean none.
#include "common/metrics_flags.h"

#include <cerrno>
#include <cstring>

namespace tools {

void AddMetricsFlags(MetricsFlags* flags, FlagTable* table) {
  table->Add("--metrics-file", "rewritten each second with the counters, for llm-top",
             &flags->file);
  table->Add("--metrics-socket", "unix socket that answers with them", &flags->socket);
  table->Add("--trace", "JSON file of steps and requests, for Perfetto", &flags->trace);
}

MetricsExport::MetricsExport(const MetricsFlags& flags, const inlay::Engine& engine) {
  if (!flags.trace.empty()) {
    Check(llm_trace_start(engine.get(), flags.trace.data(), flags.trace.size()));
  }
  if (flags.file.empty() && flags.socket.empty()) return;
  exporter_ = metrics_export_start(engine.get(), flags.file.empty() ? nullptr : flags.file.c_str(),
                                   flags.socket.empty() ? nullptr : flags.socket.c_str());
  if (exporter_ != nullptr) return;
  const std::string why = std::strerror(errno);
  const std::string between = flags.file.empty() || flags.socket.empty() ? "" : ", ";
  Fail("metrics: " + flags.file + between + flags.socket + ": " + why);
}

}  // namespace tools
