// Flags of llm-bench.
#include "bench_flags.h"

namespace bench {
namespace {

void AddFlags(Flags* flags, bool* no_warm_up, tools::FlagTable* table) {
  tools::AddModelFlags(&flags->open, table);
  tools::AddEngineFlags(&flags->open, table);
  tools::AddMetricsFlags(&flags->metrics, table);
  table->Add("--workload", "prefill, decode (default), streams or arrival", &flags->workload);
  table->Add("--prompt-tokens", "of each stream (128)", &flags->prompt_tokens);
  table->Add("--tokens", "measured tokens of each stream (64)", &flags->tokens);
  table->Add("--streams", "for streams and arrival (1)", &flags->streams);
  table->Add("--arrival-tokens", "arrival: the late prompt (3000)", &flags->arrival_tokens);
  table->Add("--repeat", "runs, one line each (1)", &flags->repeat);
  table->Add("--plan", "print the memory that it would take, and run nothing", &flags->plan);
  table->Add("--seed", "of the prompts (1)", &flags->seed);
  table->Add("--manual-drive", "steps run on the polling thread", &flags->manual_drive);
  table->Add("--no-warm-up", "measure the first request too", no_warm_up);
}

void CheckFlags(const Flags& flags, const tools::FlagTable& table) {
  if (flags.open.model.empty()) table.FailUsage("the model is missing");
  bool known = false;
  for (const char* workload : {"prefill", "decode", "streams", "arrival"})
    known |= flags.workload == workload;
  if (!known) table.FailUsage("--workload: unknown: " + flags.workload);
  if (flags.prompt_tokens == 0 || flags.streams == 0 || flags.arrival_tokens == 0)
    table.FailUsage("prompts and streams are at least 1");
  if (flags.tokens < 2) table.FailUsage("--tokens: a rate needs at least 2");
}

}  // namespace

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  bool no_warm_up = false;
  tools::FlagTable table("MODEL [flag ...]");
  table.SetPositional("--model");
  AddFlags(&flags, &no_warm_up, &table);
  table.Parse(argc, argv);
  CheckFlags(flags, table);
  flags.warm_up = !no_warm_up;
  if (flags.workload == "prefill" || flags.workload == "decode") flags.streams = 1;
  return flags;
}

}  // namespace bench
