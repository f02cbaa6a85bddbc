// llm-replay: a trace of requests on an engine, real or simulated, as one JSON object on stdout.
// What a size of machine, a policy or a rate would do can thus be asked before there is the
// machine: --sim-costs takes what a run on a real engine has printed. Says on stderr every ten
// seconds how far it is.
#include <cstdio>

#include "common/text.h"
#include "replay/replay.h"

namespace {

replay::Flags ParseFlags(int argc, char** argv) {
  replay::Flags flags;
  tools::FlagTable table("MODEL (--requests N | --trace CSV) [flag ...]");
  table.SetPositional("--model");
  tools::AddModelFlags(&flags.open, &table);
  tools::AddEngineFlags(&flags.open, &table);
  replay::TraceOptions& trace = flags.trace;
  table.Add("--sim-costs",
            "simulate, reading the model's header alone: fixed,row,token in ns, key,pair in ps "
            "(\"costs\" of a run)",
            &flags.costs);
  table.Add("--trace",
            "CSV with columns num_prefill_tokens, num_decode_tokens (or ContextTokens, "
            "GeneratedTokens); default: exponential lengths",
            &trace.path);
  table.Add("--requests", "default: those of the trace", &trace.requests);
  table.Add("--rate", "arrivals a second (1)", &trace.rate);
  table.Add("--scale", "lengths are divided by it (1)", &trace.scale);
  table.Add("--mean-prompt", "without a trace (128)", &trace.mean_prompt);
  table.Add("--mean-output", "without a trace (64)", &trace.mean_output);
  table.Add("--most-prompt", "longer ones are cut (1024)", &trace.most_prompt);
  table.Add("--most-output", "longer ones are cut (512)", &trace.most_output);
  table.Add("--seed", "of arrivals and prompts (1)", &trace.seed);
  table.Add("--policy", "fcfs (default), priority, deadline", &flags.policy);
  table.Add("--admission", "predict (default), reserve, greedy", &flags.admission);
  table.Add("--kv-tokens", "default: the library's", &flags.kv_tokens);
  table.Add("--max-sequences", "default: the library's", &flags.max_sequences);
  table.Add("--max-queued-requests", "default: the library's", &flags.max_queued_requests);
  table.Add("--first-token-ms", "deadline of each; default: none", &flags.first_token_ms);
  table.Add("--gap-ms", "target of each; default: none", &flags.gap_ms);
  table.Add("--completion-ms", "deadline of each; default: none", &flags.completion_ms);
  table.Add("--keep-late", "refuse none for its deadlines", &flags.keep_late);
  table.Add("--keep-all", "the engine knows no deadlines: only the result counts them",
            &flags.keep_all);
  table.Add("--hide-lengths", "the engine does not know how long answers get", &flags.hide_lengths);
  table.Add("--share-prefixes", "with prefix cache", &flags.share_prefixes);
  table.Add("--timeline", "CSV to write, a line a step", &flags.timeline);
  table.Parse(argc, argv);
  if (flags.open.model.empty()) table.FailUsage("the model is missing");
  if (!flags.costs.empty()) replay::ParseCosts(flags.costs);
  if (trace.path.empty() && trace.requests == 0)
    table.FailUsage("--requests or --trace is missing");
  if (!(trace.rate > 0) || !(trace.scale > 0)) table.FailUsage("--rate and --scale are above 0");
  return flags;
}

double At(const std::vector<int64_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  return static_cast<double>(
             sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))]) *
         1e-9;
}

void Print(const replay::Flags& flags, size_t requests, const replay::Result& result) {
  const auto number = [](const char* name, uint64_t value) {
    std::printf("\"%s\": %llu, ", name, static_cast<unsigned long long>(value));
  };
  const auto real = [](const char* name, double value) {
    std::printf("\"%s\": %.6f, ", name, value);
  };
  const llm_metrics_snapshot& metrics = result.metrics;
  std::printf("{\"simulated\": %s, ", flags.costs.empty() ? "false" : "true");
  number("requests", requests);
  number("rejected", result.rejected);
  number("hopeless", metrics.hopeless_requests_total);
  number("late", metrics.deadline_requests_total);
  number("good", result.good);
  number("good_by_engine", metrics.good_requests_total);
  number("preemptions", metrics.preemptions_total);
  number("recomputed_tokens", metrics.recomputed_tokens_total);
  number("steps", metrics.steps_total);
  number("generated_tokens", metrics.generated_tokens_total);
  number("total_blocks", metrics.total_blocks_current);
  real("rate", flags.trace.rate);
  real("seconds", result.seconds);
  real("wall_seconds", result.wall_seconds);
  real("tokens_per_s", static_cast<double>(metrics.generated_tokens_total) / result.seconds);
  real("good_per_s", static_cast<double>(result.good) / result.seconds);
  real("ttft_p50_s", At(result.ttft_ns, 0.5));
  real("ttft_p99_s", At(result.ttft_ns, 0.99));
  real("total_p50_s", At(result.total_ns, 0.5));
  real("cost_error_p50", static_cast<double>(metrics.cost_error_p50_ppm_current) * 1e-6);
  real("cost_error_p95", static_cast<double>(metrics.cost_error_p95_ppm_current) * 1e-6);
  std::printf("\"costs\": \"%s\"}\n", result.costs.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const replay::Flags flags = ParseFlags(argc, argv);
  const std::vector<replay::TraceRequest> trace = replay::MakeTrace(flags.trace);
  replay::Session session(flags);
  Print(flags, trace.size(), session.Run(trace));
  return 0;
}
