// llm-generate: one request from the command line. Answer on stdout, stats on stderr, exit code 0
// only on success.
#include <cstdio>
#include <inlay/llm.hpp>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "common/flags.h"
#include "common/metrics_flags.h"
#include "common/open.h"
#include "common/text.h"

namespace {

using tools::Check;
using tools::Fail;
using tools::JsonString;

struct Flags {
  tools::OpenFlags open;
  tools::MetricsFlags metrics;
  std::string prompt, chat_path;
  std::vector<int32_t> ids;
  std::vector<std::string> stop_strings;
  bool has_ids = false, read_stdin = false, json = false, ignore_eos = false, has_seed = false;
  unsigned max_tokens = 0;
  bool model_sampling = false;
  uint64_t given_sampling = 0;  // LLM_SAMPLING_*
  float temperature = 0, top_p = 0, min_p = 0, repetition_penalty = 0;
  int top_k = 0, logprobs = -1;
  uint64_t seed = 0;
};

// What came back, for --json.
struct Answer {
  std::string text, message;
  std::vector<int32_t> ids;
  std::vector<llm_logprob> logprobs;
  uint32_t logprobs_per_token = 0;
  int32_t finish_reason = LLM_FINISH_NONE;
  llm_status status = LLM_OK;
  llm_request_stats stats = {};
};

void AddPromptFlags(Flags* flags, tools::FlagTable* table) {
  table->Add("--prompt", "text", &flags->prompt);
  table->Add("--ids", "the prompt as token ids: 1,2,3",
             [flags](const std::string& text) { return tools::ParseIds(text, &flags->ids); });
  table->Add("--chat", "JSON file: an array of messages", &flags->chat_path);
  table->Add("--stdin", "the prompt is what stdin has", &flags->read_stdin);
}

void AddSamplingFlags(Flags* flags, tools::FlagTable* table) {
  table->Add("--max-tokens", "0 (default): as many as the context holds", &flags->max_tokens);
  table->Add("--temperature", "0 (default): greedy", &flags->temperature);
  table->Add("--top-k", "0 (default): off", &flags->top_k);
  table->Add("--top-p", "0 (default): off", &flags->top_p);
  table->Add("--min-p", "0 (default): off", &flags->min_p);
  table->Add("--model-sampling", "what these four leave out is as the model's files propose",
             &flags->model_sampling);
  table->Add("--seed", "default: drawn, and told", &flags->seed);
  table->Add("--logprobs", "so many most likely tokens beside each, in the JSON", &flags->logprobs);
  table->Add("--stop", "text that ends the answer; may be repeated",
             [flags](const std::string& text) {
               flags->stop_strings.push_back(text);
               return std::string();
             });
  table->Add("--ignore-eos", "go on after an end token", &flags->ignore_eos);
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  tools::FlagTable table(
      "MODEL (--prompt TEXT | --ids 1,2,3 | --chat MESSAGES.json | --stdin) [flag ...]");
  tools::AddModelFlags(&flags.open, &table);
  table.SetPositional("--model");
  AddPromptFlags(&flags, &table);
  AddSamplingFlags(&flags, &table);
  tools::AddEngineFlags(&flags.open, &table);
  tools::AddMetricsFlags(&flags.metrics, &table);
  table.Add("--json", "one JSON object instead of text", &flags.json);
  table.Parse(argc, argv);
  flags.has_seed = table.Given("--seed");
  if (table.Given("--temperature")) flags.given_sampling |= LLM_SAMPLING_TEMPERATURE;
  if (table.Given("--top-k")) flags.given_sampling |= LLM_SAMPLING_TOP_K;
  if (table.Given("--top-p")) flags.given_sampling |= LLM_SAMPLING_TOP_P;
  if (table.Given("--min-p")) flags.given_sampling |= LLM_SAMPLING_MIN_P;
  flags.has_ids = table.Given("--ids");
  if (flags.open.model.empty()) table.FailUsage("the model is missing");
  if (table.Given("--prompt") + flags.has_ids + table.Given("--chat") + flags.read_stdin != 1)
    table.FailUsage("give exactly one of --prompt, --ids, --chat, --stdin");
  return flags;
}

void UseModelSampling(const inlay::Model& model, Flags* flags) {
  llm_model_sampling proposed;
  Check(model.GetSampling(&proposed));
  const uint64_t given = flags->given_sampling;
  if ((given & LLM_SAMPLING_TEMPERATURE) == 0) flags->temperature = proposed.temperature;
  if ((given & LLM_SAMPLING_TOP_K) == 0) flags->top_k = proposed.top_k;
  if ((given & LLM_SAMPLING_TOP_P) == 0) flags->top_p = proposed.top_p;
  if ((given & LLM_SAMPLING_MIN_P) == 0) flags->min_p = proposed.min_p;
  flags->repetition_penalty = proposed.repetition_penalty;
}

void Submit(const Flags& flags, llm_engine* engine) {
  std::string text = flags.prompt;
  if (flags.read_stdin) text.assign(std::istreambuf_iterator<char>(std::cin), {});
  const std::string chat = flags.chat_path.empty() ? "" : tools::ReadFile(flags.chat_path);
  std::vector<llm_string> stop_strings;
  for (const std::string& stop : flags.stop_strings) stop_strings.push_back(inlay::String(stop));

  llm_request request;
  llm_request_init(&request);
  if (flags.has_ids) {
    request.prompt_ids = flags.ids.data();
    request.num_prompt_ids = flags.ids.size();
  } else if (!flags.chat_path.empty()) {
    request.chat = inlay::String(chat);
  } else {
    request.text = inlay::String(text);
  }
  request.max_new_tokens = flags.max_tokens;
  request.temperature = flags.temperature;
  request.top_k = flags.top_k;
  request.top_p = flags.top_p;
  request.min_p = flags.min_p;
  request.repetition_penalty = flags.repetition_penalty;
  request.seed = flags.seed;
  if (flags.has_seed) request.set |= LLM_SET_SEED;
  if (flags.logprobs >= 0) {
    request.num_logprobs = flags.logprobs;
    request.set |= LLM_SET_NUM_LOGPROBS;
  }
  request.ignore_eos = flags.ignore_eos ? LLM_ON : 0;
  request.stop_strings = stop_strings.data();
  request.num_stop_strings = stop_strings.size();
  llm_request_id id = 0;
  Check(llm_submit(engine, &request, &id));
}

void Take(const llm_event& event, bool stream, Answer* answer) {
  answer->text.append(event.text.data, event.text.size);
  answer->ids.insert(answer->ids.end(), event.token_ids, event.token_ids + event.num_tokens);
  if (event.num_tokens > 0) answer->logprobs_per_token = event.logprobs_per_token;
  for (size_t i = 0; i < event.num_tokens * event.logprobs_per_token; ++i) {
    const char* element = reinterpret_cast<const char*>(event.logprobs) + i * event.logprob_size;
    answer->logprobs.push_back(*reinterpret_cast<const llm_logprob*>(element));
  }
  if (stream) {
    std::fwrite(event.text.data, 1, event.text.size, stdout);
    std::fflush(stdout);
  }
  if (event.type == LLM_EVENT_FINISHED) {
    answer->finish_reason = event.finish_reason;
    answer->status = event.status;
    answer->message.assign(event.message.data, event.message.size);
    answer->stats = *event.stats;
  }
}

Answer Collect(llm_engine* engine, bool stream) {
  Answer answer;
  while (answer.finish_reason == LLM_FINISH_NONE) {
    llm_event event;
    size_t count = 0;
    Check(llm_poll(llm_engine_queue(engine), &event, sizeof event, 1, -1, &count));
    if (count == 1) Take(event, stream, &answer);
  }
  return answer;
}

const char* FinishName(int32_t reason) {
  constexpr const char* kNames[] = {"none",      "end_token", "stop_token", "stop_string", "length",
                                    "cancelled", "deadline",  "rejected",   "error"};
  return reason >= 0 && reason <= LLM_FINISH_ERROR ? kNames[reason] : "unknown";
}

// [[{"id": chosen, "logprob": l}, most likely ...], ...], one list a token.
void PrintLogprobs(const Answer& answer) {
  for (size_t token = 0; token < answer.ids.size(); ++token) {
    std::printf("%s[", token == 0 ? "" : ", ");
    for (size_t k = 0; k < answer.logprobs_per_token; ++k) {
      const llm_logprob& entry = answer.logprobs[token * answer.logprobs_per_token + k];
      std::printf("%s{\"id\": %d, \"logprob\": %.9g}", k == 0 ? "" : ", ", entry.id,
                  static_cast<double>(entry.logprob));
    }
    std::printf("]");
  }
}

double TokensPerSecond(const llm_request_stats& stats) {
  const double decode_s = static_cast<double>(stats.total_ns - stats.ttft_ns) / 1e9;
  return stats.generated_tokens > 1 && decode_s > 0 ? (stats.generated_tokens - 1) / decode_s : 0;
}

void PrintJson(const Answer& answer) {
  const llm_request_stats& stats = answer.stats;
  std::printf("{\"ids\": [");
  for (size_t i = 0; i < answer.ids.size(); ++i)
    std::printf("%s%d", i == 0 ? "" : ", ", answer.ids[i]);
  std::printf("], \"text\": %s, \"finish_reason\": \"%s\", \"message\": %s, \"logprobs\": [",
              JsonString(answer.text).c_str(), FinishName(answer.finish_reason),
              JsonString(answer.message).c_str());
  if (answer.logprobs_per_token > 0) PrintLogprobs(answer);
  std::printf(
      "], \"stats\": {\"prompt_tokens\": %d, \"cached_tokens\": %d, \"generated_tokens\": %d, "
      "\"queue_ms\": %.3f, "
      "\"ttft_ms\": %.3f, \"total_ms\": %.3f, \"decode_tokens_per_s\": %.2f, \"preemptions\": %d, "
      "\"seed\": %llu}}\n",
      stats.prompt_tokens, stats.cached_tokens, stats.generated_tokens,
      static_cast<double>(stats.queue_ns) / 1e6, static_cast<double>(stats.ttft_ns) / 1e6,
      static_cast<double>(stats.total_ns) / 1e6, TokensPerSecond(stats), stats.preemptions,
      static_cast<unsigned long long>(stats.seed));
}

void PrintStats(const Answer& answer) {
  const llm_request_stats& stats = answer.stats;
  std::fprintf(
      stderr,
      "%s: prompt %d tokens (%d cached), generated %d; queue %.2f ms, first token %.1f ms, "
      "then %.1f tokens/s; seed %llu\n",
      FinishName(answer.finish_reason), stats.prompt_tokens, stats.cached_tokens,
      stats.generated_tokens, static_cast<double>(stats.queue_ns) / 1e6,
      static_cast<double>(stats.ttft_ns) / 1e6, TokensPerSecond(stats),
      static_cast<unsigned long long>(stats.seed));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags = ParseFlags(argc, argv);
  const inlay::Model model = tools::OpenModel(flags.open);
  if (flags.model_sampling) UseModelSampling(model, &flags);
  const llm_engine_options options = tools::EngineOptions(flags.open);
  inlay::Engine engine;
  Check(inlay::Engine::Open(model, &options, &engine));
  const tools::MetricsExport metrics(flags.metrics, engine);
  Submit(flags, engine.get());
  const Answer answer = Collect(engine.get(), !flags.json);
  if (flags.json) {
    PrintJson(answer);
  } else {
    std::printf("\n");
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) Fail("cannot write the answer");
  if (!flags.json) PrintStats(answer);
  if (answer.status != LLM_OK) Fail(answer.message);
  return 0;
}
