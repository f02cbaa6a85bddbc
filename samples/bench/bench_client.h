// A model and an engine opened through the C ABI, and requests whose tokens get time stamps.
#pragma once

#include <chrono>
#include <cstdint>
#include <inlay/llm.hpp>
#include <string>
#include <vector>

#include "bench_flags.h"

namespace bench {

using Clock = std::chrono::steady_clock;

inline double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

using tools::Check;
using tools::Fail;

// One request as its caller saw it.
struct Stream {
  llm_request_id id = 0;
  Clock::time_point submitted;
  std::vector<Clock::time_point> arrivals;  // [tokens] when the event with the token was polled
  bool finished = false;
  int32_t finish_reason = LLM_FINISH_NONE;
  llm_request_stats stats = {};
};

// What an engine must hold for a workload.
struct Capacity {
  uint32_t sequences = 1;
  uint64_t tokens_per_sequence = 0;
  uint64_t extra_tokens = 0;
};

// The options of the engine that a Client opens. Strings in them are borrowed from `flags`.
llm_engine_options EngineOptions(const Flags& flags, const Capacity& capacity);

class Client {
 public:
  Client(const Flags& flags, const Capacity& capacity);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Pseudo-random ordinary tokens (ids that give text: control tokens do not), new ones at each
  // call.
  std::vector<int32_t> RandomPrompt(unsigned num_tokens);
  // Greedy, no prefix cache, no end token. The stream must stay where it is until it is finished.
  void Submit(const std::vector<int32_t>& prompt, uint32_t max_new_tokens, Stream* stream);
  // Waits for events (manual drive: runs a step) and hands them to their streams.
  void Poll();
  // Cancels what is open among them and polls until each is finished.
  void Drain(std::vector<Stream*> streams);

  const inlay::Engine& engine() const { return engine_; }
  const llm_model_info& info() const { return info_; }
  llm_metrics_snapshot Metrics() const;
  double model_open_s() const { return model_open_s_; }
  double engine_open_s() const { return engine_open_s_; }

 private:
  void OpenModel(const Flags& flags);
  void OpenEngine(const Flags& flags, const Capacity& capacity);
  bool IsOrdinary(int32_t id) const;
  uint64_t NextRandom();

  inlay::Model model_;
  inlay::Engine engine_;
  llm_model_info info_ = {};
  double model_open_s_ = 0, engine_open_s_ = 0;
  bool manual_drive_;
  uint64_t random_state_;
};

}  // namespace bench
