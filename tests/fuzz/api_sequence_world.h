// What an API sequence has open, and what it remembers of each request.
#pragma once

#include <inlay/llm.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "tests/fuzz/api_sequence_host.h"
#include "tests/fuzz/api_sequence_oracle.h"

namespace llm {

// Bytes that decide; zeros once they are used up.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint32_t Next() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  uint32_t Below(uint32_t limit) { return Next() % limit; }
  uint64_t Word() {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | Next();
    return word;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

struct SequenceEngine {
  llm_engine* engine = nullptr;
  SequenceHost host;
  bool shut_down = false;
  uint64_t submitted = 0;  // all that was taken in, waiting calls included
  uint64_t refused = 0;
  uint64_t waiting = 0;  // calls that wait inside this one
  std::atomic<uint64_t> finished{0};
  std::vector<llm_pin_id> pins;
};

class World;  // api_sequence.cc

// One submitted request and what came of it.
struct Tracked {
  World* world = nullptr;
  SequenceEngine* engine = nullptr;
  llm_queue* queue = nullptr;  // null: the engine's, or a callback
  std::atomic<llm_request_id> id{0};
  uint32_t prompt = 0;
  float temperature = 0.0f;
  uint64_t seed = 0;
  uint32_t num_choices = 1;
  uint32_t max_new_tokens = 0;
  uint32_t behaviour = 0;  // of its callback
  bool logprobs = false;
  bool prompt_logprobs = false;
  bool refused = false;
  bool dropped = false;  // its queue was closed
  bool finished = false;
  struct Choice {
    Answer got;
    bool done = false;
  };
  std::array<Choice, 4> choices;

  // Every check of an event of this request.
  void Take(const llm_event& event);

 private:
  void TakeTokens(const llm_event& event);
  void CheckAnswer(const llm_event& event) const;
  void TakeFinished(const llm_event& event);
};

inline Oracle& TheOracle() {
  static Oracle oracle;  // opened once for all sequences
  return oracle;
}

inline bool SameBits(const std::vector<float>& got, const std::vector<float>& wanted) {
  return got.size() <= wanted.size() &&
         (got.empty() || std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0);
}

inline void Tracked::TakeTokens(const llm_event& event) {
  Choice& choice = choices[event.choice];
  SEQUENCE_CHECK(!choice.done && event.stats == nullptr);
  SEQUENCE_CHECK((event.logprobs_per_token != 0) ==
                 (event.type == LLM_EVENT_PROMPT ? prompt_logprobs : logprobs));
  if (event.type == LLM_EVENT_PROMPT) {
    SEQUENCE_CHECK(event.choice == 0 && choice.got.ids.empty() && event.num_tokens > 0);
  }
  for (size_t i = 0; i < event.num_tokens; ++i) {
    const llm_logprob* one = event.logprobs + i * event.logprobs_per_token;
    if (event.logprobs_per_token != 0) SEQUENCE_CHECK(one->id == event.token_ids[i]);
    if (event.type == LLM_EVENT_PROMPT) {
      choice.got.prompt_logprobs.push_back(one->logprob);
    } else {
      choice.got.ids.push_back(event.token_ids[i]);
      if (logprobs) choice.got.logprobs.push_back(one->logprob);
    }
  }
}

inline void Tracked::CheckAnswer(const llm_event& event) const {
  const Choice& choice = choices[event.choice];
  const Answer& got = choice.got;
  const Answer& alone = TheOracle().Of(prompt, temperature, event.stats->seed);
  SEQUENCE_CHECK(got.ids.size() <= max_new_tokens);
  SEQUENCE_CHECK(std::equal(got.ids.begin(), got.ids.end(), alone.ids.begin()));
  SEQUENCE_CHECK(SameBits(got.logprobs, alone.logprobs));
  SEQUENCE_CHECK(SameBits(got.prompt_logprobs, alone.prompt_logprobs));
  if (event.choice == 0) SEQUENCE_CHECK(event.stats->seed == seed);
  if (event.status != LLM_OK) return;
  SEQUENCE_CHECK(event.finish_reason == LLM_FINISH_LENGTH && got.ids.size() == max_new_tokens);
  if (prompt_logprobs && event.choice == 0) {
    SEQUENCE_CHECK(got.prompt_logprobs.size() == alone.prompt_logprobs.size());
  }
}

inline void Tracked::TakeFinished(const llm_event& event) {
  const llm_request_stats& stats = *event.stats;
  SEQUENCE_CHECK(stats.queue_ns + stats.prefill_ns + stats.stall_ns + stats.decode_ns +
                     stats.deliver_ns ==
                 stats.total_ns);
  if (event.type == LLM_EVENT_CHOICE_FINISHED) {
    SEQUENCE_CHECK(num_choices > 1 && !choices[event.choice].done);
    choices[event.choice].done = true;
    return CheckAnswer(event);
  }
  finished = true;
  ++engine->finished;
  if (num_choices == 1) return CheckAnswer(event);
  for (uint32_t i = 0; i < num_choices; ++i) SEQUENCE_CHECK(choices[i].done);
}

inline void Tracked::Take(const llm_event& event) {
  SEQUENCE_CHECK(!refused && !finished && !dropped);
  SEQUENCE_CHECK(event.id != 0 && (id == 0 || id == event.id));
  SEQUENCE_CHECK(event.choice < num_choices && event.user_data == this);
  if (event.type == LLM_EVENT_TOKENS || event.type == LLM_EVENT_PROMPT) return TakeTokens(event);
  SEQUENCE_CHECK(event.num_tokens == 0 && event.text.size == 0 && event.stats != nullptr);
  static constexpr llm_status kStatus[] = {-1,
                                           LLM_OK,
                                           LLM_OK,
                                           LLM_OK,
                                           LLM_OK,
                                           LLM_CANCELLED,
                                           LLM_DEADLINE_EXCEEDED,
                                           LLM_RESOURCE_EXHAUSTED,
                                           LLM_INTERNAL};
  SEQUENCE_CHECK(event.finish_reason >= 1 && event.finish_reason <= LLM_FINISH_ERROR);
  SEQUENCE_CHECK(event.status == kStatus[event.finish_reason]);
  TakeFinished(event);
}

}  // namespace llm
