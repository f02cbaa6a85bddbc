// llm-generate: one request from the command line. Answer on stdout, stats on stderr, exit code 0
// only on success.
#include <inlay/llm.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr char kUsage[] =
    "usage: llm-generate --model PATH (--prompt TEXT | --ids 1,2,3 | --chat MESSAGES.json | "
    "--stdin)\n"
    "  --threads N --kv-dtype f32|f16|bf16|fp8|int8 --json --max-tokens N --temperature T --top-k "
    "K --top-p P\n"
    "  --min-p P --seed S --logprobs K --stop TEXT --ignore-eos --kernels NAME "
    "--float-activations\n";

struct Flags {
  std::string model, prompt, chat_path, kernels;
  std::vector<int32_t> ids;
  std::vector<std::string> stop_strings;
  bool has_prompt = false, has_ids = false, read_stdin = false, json = false, ignore_eos = false;
  bool has_seed = false, float_activations = false;
  unsigned threads = 0, max_tokens = 0, kv_dtype = LLM_KV_DEFAULT;
  float temperature = 0, top_p = 0, min_p = 0;
  int top_k = 0, logprobs = -1;
  unsigned long long seed = 0;
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

[[noreturn]] void Fail(const std::string& message) {
  std::cerr << "llm-generate: " << message << "\n";
  std::exit(1);
}

[[noreturn]] void FailUsage(const std::string& message) {
  std::cerr << "llm-generate: " << message << "\n" << kUsage;
  std::exit(2);
}

void Check(llm_status status) {
  if (status != LLM_OK) Fail(std::string(llm_status_name(status)) + ": " + llm_last_error());
}

template <typename T>
T Number(const std::string& flag, const std::string& text) {
  std::istringstream stream(text);
  T value{};
  if (text.find('-') == 0 && std::is_unsigned_v<T>)
    FailUsage(flag + ": not a number that it takes: " + text);
  if (!(stream >> value) || stream.peek() != EOF)
    FailUsage(flag + ": not a number that it takes: " + text);
  return value;
}

std::vector<int32_t> ParseIds(const std::string& text) {
  std::vector<int32_t> ids;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    ids.push_back(Number<int32_t>("--ids", part));
  return ids;
}

unsigned ParseKvDtype(const std::string& name) {
  if (name == "f32") return LLM_KV_F32;
  if (name == "f16") return LLM_KV_F16;
  if (name == "bf16") return LLM_KV_BF16;
  if (name == "fp8" || name == "fp8_e4m3") return LLM_KV_FP8_E4M3;
  if (name == "int8") return LLM_KV_INT8;
  FailUsage("--kv-dtype: unknown: " + name);
}

// Sets a flag that takes a value; false when there is no such flag.
bool SetValue(const std::string& flag, const std::string& value, Flags* flags) {
  if (flag == "--model")
    flags->model = value;
  else if (flag == "--prompt")
    flags->prompt = value, flags->has_prompt = true;
  else if (flag == "--ids")
    flags->ids = ParseIds(value), flags->has_ids = true;
  else if (flag == "--chat")
    flags->chat_path = value;
  else if (flag == "--threads")
    flags->threads = Number<unsigned>(flag, value);
  else if (flag == "--kv-dtype")
    flags->kv_dtype = ParseKvDtype(value);
  else if (flag == "--max-tokens")
    flags->max_tokens = Number<unsigned>(flag, value);
  else if (flag == "--temperature")
    flags->temperature = Number<float>(flag, value);
  else if (flag == "--top-k")
    flags->top_k = Number<int>(flag, value);
  else if (flag == "--top-p")
    flags->top_p = Number<float>(flag, value);
  else if (flag == "--min-p")
    flags->min_p = Number<float>(flag, value);
  else if (flag == "--seed")
    flags->seed = Number<unsigned long long>(flag, value), flags->has_seed = true;
  else if (flag == "--logprobs")
    flags->logprobs = Number<int>(flag, value);
  else if (flag == "--stop")
    flags->stop_strings.push_back(value);
  else if (flag == "--kernels")
    flags->kernels = value;
  else
    return false;
  return true;
}

bool SetSwitch(const std::string& flag, Flags* flags) {
  if (flag == "--stdin")
    flags->read_stdin = true;
  else if (flag == "--json")
    flags->json = true;
  else if (flag == "--ignore-eos")
    flags->ignore_eos = true;
  else if (flag == "--float-activations")
    flags->float_activations = true;
  else
    return false;
  return true;
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (SetSwitch(flag, &flags)) continue;
    if (i + 1 >= argc) FailUsage("unknown flag, or one without its value: " + flag);
    if (!SetValue(flag, argv[++i], &flags)) FailUsage("unknown flag: " + flag);
  }
  if (flags.model.empty()) FailUsage("--model is missing");
  const int prompts =
      flags.has_prompt + flags.has_ids + !flags.chat_path.empty() + flags.read_stdin;
  if (prompts != 1) FailUsage("give exactly one of --prompt, --ids, --chat, --stdin");
  return flags;
}

llm_string View(const std::string& text) { return {text.data(), text.size()}; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

llm_model* OpenModel(const Flags& flags) {
  llm_model_options options;
  llm_model_options_init(&options);
  options.num_threads = flags.threads;
  options.kernels = View(flags.kernels);
  options.float_activations = flags.float_activations ? LLM_ON : 0;
  llm_model* model = nullptr;
  Check(llm_model_open(flags.model.data(), flags.model.size(), &options, &model));
  return model;
}

llm_engine* OpenEngine(const Flags& flags, llm_model* model) {
  llm_engine_options options;
  llm_engine_options_init(&options);
  options.num_threads = flags.threads;
  options.kv_dtype = flags.kv_dtype;
  llm_engine* engine = nullptr;
  Check(llm_engine_open(model, &options, &engine));
  return engine;
}

void Submit(const Flags& flags, llm_engine* engine) {
  std::string text = flags.prompt;
  if (flags.read_stdin) text.assign(std::istreambuf_iterator<char>(std::cin), {});
  const std::string chat = flags.chat_path.empty() ? "" : ReadFile(flags.chat_path);
  std::vector<llm_string> stop_strings;
  for (const std::string& stop : flags.stop_strings) stop_strings.push_back(View(stop));

  llm_request request;
  llm_request_init(&request);
  if (flags.has_ids) {
    request.prompt_ids = flags.ids.data();
    request.num_prompt_ids = flags.ids.size();
  } else if (!flags.chat_path.empty()) {
    request.chat = View(chat);
  } else {
    request.text = View(text);
  }
  request.max_new_tokens = flags.max_tokens;
  request.temperature = flags.temperature;
  request.top_k = flags.top_k;
  request.top_p = flags.top_p;
  request.min_p = flags.min_p;
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

// Text is valid UTF-8 by the library's promise, so only JSON's own characters need escapes.
std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
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
  const Flags flags = ParseFlags(argc, argv);
  llm_model* model = OpenModel(flags);
  llm_engine* engine = OpenEngine(flags, model);
  Submit(flags, engine);
  const Answer answer = Collect(engine, !flags.json);
  if (flags.json) {
    PrintJson(answer);
  } else {
    std::printf("\n");
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) Fail("cannot write the answer");
  if (!flags.json) PrintStats(answer);
  llm_engine_close(engine);
  llm_model_release(model);
  if (answer.status != LLM_OK) std::cerr << "llm-generate: " << answer.message << "\n";
  return answer.status == LLM_OK ? 0 : 1;
}
