// From the start of a process to its first token, once: what cold.py runs. Prints a line when it
// has the token, by which the caller knows how long it took, and then the stages as JSON.
//
// Usage: cold_start MODEL PROMPT_TOKENS (read | map) [threads=N] [kernels=NAME] [hold]
// hold: waits for the end of its input before it ends.
#include <inlay/llm.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/one_token.h"

namespace {

using bench::Check;
using bench::NowNs;

// Until the first token of a prompt that no other call has begun.
int64_t PrefillNs(llm_engine* engine, int num_tokens, int salt) {
  std::vector<int32_t> ids;
  for (int i = 0; i < num_tokens; ++i) ids.push_back(100 + salt + i * 7 % 300);
  const int64_t start_ns = NowNs();
  bench::SubmitOneToken(engine, ids);
  bench::WaitForTtft(engine);
  return NowNs() - start_ns;
}

// What follows "name=" among the arguments, or "".
std::string Option(int argc, char** argv, const std::string& name) {
  for (int i = 4; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.compare(0, name.size() + 1, name + "=") == 0)
      return argument.substr(name.size() + 1);
  }
  return "";
}

void Open(int argc, char** argv, llm_model** model, llm_engine** engine) {
  const auto num_threads = static_cast<uint32_t>(std::atoi(Option(argc, argv, "threads").c_str()));
  const std::string kernels = Option(argc, argv, "kernels");
  llm_model_options options;
  llm_model_options_init(&options);
  options.map_pack = std::strcmp(argv[3], "map") == 0 ? LLM_ON : 0;
  options.num_threads = num_threads;
  options.kernels = {kernels.data(), kernels.size()};
  Check(llm_model_open(argv[1], std::strlen(argv[1]), &options, model));
  llm_engine_options engine_options;
  llm_engine_options_init(&engine_options);
  engine_options.num_threads = num_threads;
  Check(llm_engine_open(*model, &engine_options, engine));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  llm_model* model = nullptr;
  llm_engine* engine = nullptr;
  Open(argc, argv, &model, &engine);
  const int num_tokens = std::atoi(argv[2]);
  const int64_t first_ns = PrefillNs(engine, num_tokens, 0);
  std::puts("first token");
  std::fflush(stdout);
  PrefillNs(engine, num_tokens, 1);  // the step budget is chosen by now
  int64_t warm_ns = PrefillNs(engine, num_tokens, 2);
  for (int i = 3; i < 6; ++i) warm_ns = std::min(warm_ns, PrefillNs(engine, num_tokens, i));
  llm_model_info info;
  llm_model_info_init(&info);
  Check(llm_model_get_info(model, &info));
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  Check(llm_metrics(engine, &metrics));
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "{\"first_ns\": %lld, \"warm_ns\": %lld, \"open_ns\": %llu, "
      "\"header_ns\": %llu, \"tokenizer_ns\": %llu, \"read_ns\": %llu, \"repack_ns\": %llu, "
      "\"engine_ns\": %llu, \"weights_bytes\": %llu}\n",
      static_cast<long long>(first_ns), static_cast<long long>(warm_ns), number(info.open_ns),
      number(info.header_ns), number(info.tokenizer_ns), number(info.read_ns),
      number(info.repack_ns), number(metrics.engine_open_ns), number(info.weights_bytes));
  std::fflush(stdout);
  if (std::strcmp(argv[argc - 1], "hold") == 0) std::getchar();
  llm_engine_close(engine);
  llm_model_release(model);
  return 0;
}
