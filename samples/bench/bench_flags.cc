// Flags of llm-bench, in a table so that usage and parser cannot disagree.
#include "bench_flags.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace bench {
namespace {

using Target = std::variant<std::string*, unsigned*, uint64_t*>;

struct Flag {
  const char* name;
  const char* help;
  Target target;
};

constexpr std::pair<const char*, uint32_t> kKvDtypes[] = {{"f16", LLM_KV_F16},
                                                          {"f32", LLM_KV_F32},
                                                          {"bf16", LLM_KV_BF16},
                                                          {"fp8", LLM_KV_FP8_E4M3},
                                                          {"int8", LLM_KV_INT8}};

std::vector<Flag> Table(Flags* flags) {
  return {
      {"--model", "GGUF file", &flags->model},
      {"--workload", "prefill, decode, streams or arrival", &flags->workload},
      {"--threads", "default: all cores", &flags->threads},
      {"--kv-dtype", "f16 (default), f32, bf16, fp8, int8", &flags->kv_dtype},
      {"--kernels", "instruction set; default: the fastest", &flags->kernels},
      {"--prompt-tokens", "of each stream (128)", &flags->prompt_tokens},
      {"--tokens", "measured tokens of each stream (64)", &flags->tokens},
      {"--streams", "for streams and arrival (1)", &flags->streams},
      {"--arrival-tokens", "arrival: the late prompt (3000)", &flags->arrival_tokens},
      {"--max-step-tokens", "step budget; default: the library's", &flags->max_step_tokens},
      {"--block-size", "default: the library's", &flags->block_size},
      {"--repeat", "runs, one line each (1)", &flags->repeat},
      {"--seed", "of the prompts (1)", &flags->seed},
  };
}

[[noreturn]] void FailUsage(const std::string& message) {
  std::fprintf(stderr, "llm-bench: %s\nusage: llm-bench --model PATH [flag value ...]\n",
               message.c_str());
  Flags defaults;
  for (const Flag& flag : Table(&defaults))
    std::fprintf(stderr, "  %-18s %s\n", flag.name, flag.help);
  std::fprintf(stderr, "  --float-activations, --manual-drive, --no-warm-up\n");
  std::exit(2);
}

void SetValue(const Flag& flag, const std::string& value) {
  const auto set = [&](auto* target) {
    if constexpr (std::is_same_v<decltype(target), std::string*>) {
      *target = value;
    } else {
      std::istringstream stream(value);
      if (value.find('-') == 0 || !(stream >> *target) || stream.peek() != EOF)
        FailUsage(std::string(flag.name) + ": not a number that it takes: " + value);
    }
  };
  std::visit(set, flag.target);
}

bool SetSwitch(const std::string& name, Flags* flags) {
  if (name == "--float-activations") return flags->float_activations = true;
  if (name == "--manual-drive") return flags->manual_drive = true;
  if (name == "--no-warm-up") return !(flags->warm_up = false);
  return false;
}

void Check(const Flags& flags) {
  if (flags.model.empty()) FailUsage("--model is missing");
  bool known = false;
  for (const char* workload : {"prefill", "decode", "streams", "arrival"})
    known |= flags.workload == workload;
  if (!known) FailUsage("--workload: unknown: " + flags.workload);
  if (flags.prompt_tokens == 0 || flags.streams == 0 || flags.arrival_tokens == 0)
    FailUsage("prompts and streams are at least 1");
  if (flags.tokens < 2) FailUsage("--tokens: a rate needs at least 2");
  known = false;
  for (const auto& [name, id] : kKvDtypes) known |= flags.kv_dtype == name;
  if (!known) FailUsage("--kv-dtype: unknown: " + flags.kv_dtype);
}

}  // namespace

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  const std::vector<Flag> table = Table(&flags);
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (SetSwitch(name, &flags)) continue;
    const Flag* found = nullptr;
    for (const Flag& flag : table)
      if (name == flag.name) found = &flag;
    if (found == nullptr || i + 1 >= argc)
      FailUsage("unknown flag, or one without its value: " + name);
    SetValue(*found, argv[++i]);
  }
  Check(flags);
  if (flags.workload == "prefill" || flags.workload == "decode") flags.streams = 1;
  return flags;
}

uint32_t KvDtype(const std::string& name) {
  for (const auto& [known, id] : kKvDtypes)
    if (name == known) return id;
  return LLM_KV_DEFAULT;
}

}  // namespace bench
