// What an API sequence's requests must answer: each alone on an engine of its own.
#pragma once

#include <inlay/llm.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#define SEQUENCE_CHECK(condition)                                                                 \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      std::fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, llm_last_error()); \
      std::abort();                                                                               \
    }                                                                                             \
  } while (false)

namespace llm {

inline constexpr uint32_t kOracleTokens = 56;
inline constexpr uint32_t kNumPrompts = 8;

// Prompts of 2 to 51 tokens; 0 to 3 and 4 to 7 begin alike.
inline std::vector<int32_t> SequencePrompt(uint32_t index) {
  static constexpr size_t kLengths[kNumPrompts] = {2, 17, 33, 50, 5, 18, 40, 51};
  std::vector<int32_t> ids(kLengths[index % kNumPrompts]);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(3 + (i * 7 + (index >= kNumPrompts / 2 ? 29 : 0)) % 90);
  }
  return ids;
}

struct Answer {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  std::vector<float> prompt_logprobs;
};

class Oracle {
 public:
  Oracle() {
    const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
    SEQUENCE_CHECK(llm_model_open(path.data(), path.size(), nullptr, &model_) == LLM_OK);
    llm_engine_options options;
    llm_engine_options_init(&options);
    options.drive = LLM_DRIVE_MANUAL;
    options.num_threads = 1;
    options.kv_tokens = 512;
    options.max_step_tokens = 64;
    options.prefix_cache = LLM_OFF;
    SEQUENCE_CHECK(llm_engine_open(model_, &options, &engine_) == LLM_OK);
  }
  ~Oracle() {
    llm_engine_close(engine_);
    llm_model_release(model_);
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  llm_model* model() const { return model_; }

  // The first kOracleTokens of the answer; a shorter one is its prefix.
  const Answer& Of(uint32_t prompt, float temperature, uint64_t seed) {
    std::lock_guard<std::mutex> lock(mutex_);
    Answer& answer = answers_[{prompt, temperature, temperature == 0.0f ? 0 : seed}];
    if (answer.ids.empty()) Compute(prompt, temperature, seed, &answer);
    return answer;
  }

 private:
  void Compute(uint32_t prompt, float temperature, uint64_t seed, Answer* answer) {
    const std::vector<int32_t> ids = SequencePrompt(prompt);
    llm_request request;
    llm_request_init(&request);
    request.prompt_ids = ids.data();
    request.num_prompt_ids = ids.size();
    request.max_new_tokens = kOracleTokens;
    request.ignore_eos = LLM_ON;
    request.temperature = temperature;
    request.seed = seed;
    request.set = LLM_SET_SEED | LLM_SET_NUM_LOGPROBS | LLM_SET_NUM_PROMPT_LOGPROBS;
    llm_request_id id = 0;
    SEQUENCE_CHECK(llm_submit(engine_, &request, &id) == LLM_OK);
    for (uint32_t worked = 1; worked != 0;) {
      SEQUENCE_CHECK(llm_engine_step(engine_, &worked) == LLM_OK);
      llm_event event;
      size_t count = 1;
      while (count != 0) {
        SEQUENCE_CHECK(llm_poll(llm_engine_queue(engine_), &event, sizeof(event), 1, 0, &count) ==
                       LLM_OK);
        if (count != 0) Take(event, answer);
      }
    }
    SEQUENCE_CHECK(answer->ids.size() == kOracleTokens);
  }
  static void Take(const llm_event& event, Answer* answer) {
    const bool prompt = event.type == LLM_EVENT_PROMPT;
    for (size_t i = 0; i < event.num_tokens; ++i) {
      if (!prompt) answer->ids.push_back(event.token_ids[i]);
      (prompt ? answer->prompt_logprobs : answer->logprobs).push_back(event.logprobs[i].logprob);
    }
  }

  llm_model* model_ = nullptr;
  llm_engine* engine_ = nullptr;
  std::mutex mutex_;
  std::map<std::tuple<uint32_t, float, uint64_t>, Answer> answers_;
};

}  // namespace llm
