// llm-bench: speed of this library on one workload, as one JSON object a line on stdout. Uses only
// the public header; exit code 0 only when every request ended well.
#include <inlay/llm.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench_client.h"
#include "bench_flags.h"
#include "common/text.h"
#include "workloads.h"

namespace {

using tools::JsonString;

std::string Text(llm_string string) { return {string.data, string.size}; }

long PeakResidentKib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void Print(const bench::Flags& flags, const bench::Client& client, const bench::Result& result) {
  const llm_model_info& info = client.info();
  const llm_metrics_snapshot metrics = client.Metrics();
  std::printf("{\"engine\": \"inlay\", \"workload\": %s, \"model\": %s, \"kernels\": %s, ",
              JsonString(flags.workload).c_str(), JsonString(flags.open.model).c_str(),
              JsonString(Text(info.kernels)).c_str());
  std::printf("\"threads\": %u, \"kv_dtype\": \"%s\", \"streams\": %u, \"prompt_tokens\": %u, ",
              flags.open.threads, flags.open.kv_dtype.c_str(), flags.streams, flags.prompt_tokens);
  std::printf("\"tokens\": %llu, \"seconds\": %.6f, \"tokens_per_s\": %.3f, \"ttft_s\": %.6f, ",
              static_cast<unsigned long long>(result.tokens), result.seconds,
              static_cast<double>(result.tokens) / result.seconds, result.ttft_s);
  std::printf(
      "\"total_s\": %.6f, \"median_gap_s\": %.6f, \"p99_gap_s\": %.6f, \"worst_gap_s\": %.6f, ",
      result.total_s, result.median_gap_s, result.p99_gap_s, result.worst_gap_s);
  std::printf("\"model_open_s\": %.6f, \"engine_open_s\": %.6f, \"steps\": %llu, ",
              client.model_open_s(), client.engine_open_s(),
              static_cast<unsigned long long>(metrics.steps_total));
  const double steps = static_cast<double>(std::max<uint64_t>(result.steps, 1));
  std::printf("\"step_us\": %.2f, \"step_bytes\": %.0f, ", result.seconds * 1e6 / steps,
              static_cast<double>(result.bytes_read) / steps);
  std::printf("\"graph_steps\": %llu, \"ahead_steps\": %llu, ",
              static_cast<unsigned long long>(metrics.graph_steps_total),
              static_cast<unsigned long long>(metrics.ahead_steps_total));
  std::printf("\"preemptions\": %llu, \"weights_bytes\": %llu, \"engine_bytes\": %llu, ",
              static_cast<unsigned long long>(metrics.preemptions_total),
              static_cast<unsigned long long>(info.weights_bytes),
              static_cast<unsigned long long>(metrics.memory_bytes_current));
  std::printf("\"peak_resident_bytes\": %lld}\n", static_cast<long long>(PeakResidentKib()) * 1024);
  std::fflush(stdout);
}

// What this workload's model and engine are to take, in the same words as llm_memory_plan.
void PrintPlan(const bench::Flags& flags) {
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = inlay::String(flags.open.model);
  const llm_model_options model_options = tools::ModelOptions(flags.open);
  const llm_engine_options options = bench::EngineOptions(flags, bench::CapacityFor(flags));
  llm_memory_plan plan;
  llm_memory_plan_init(&plan);
  tools::Check(llm_plan(&source, &model_options, &options, &plan));
  const auto print = [](const char* name, uint64_t bytes, const char* end) {
    std::printf("\"%s_bytes\": %llu%s", name, static_cast<unsigned long long>(bytes), end);
  };
  std::printf("{");
  print("weights", plan.weights_bytes, ", ");
  print("loading", plan.loading_bytes, ", ");
  print("tokenizer", plan.tokenizer_bytes, ", ");
  print("kv", plan.kv_bytes, ", ");
  print("workspace", plan.workspace_bytes, ", ");
  print("event", plan.event_bytes, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Flags flags = bench::ParseFlags(argc, argv);
  if (flags.plan) {
    PrintPlan(flags);
    return 0;
  }
  bench::Client client(flags, bench::CapacityFor(flags));
  const tools::MetricsExport metrics(flags.metrics, client.engine());
  if (flags.warm_up) bench::WarmUp(&client);
  for (unsigned run = 0; run < flags.repeat; ++run)
    Print(flags, client, bench::RunWorkload(flags, &client));
  return 0;
}
