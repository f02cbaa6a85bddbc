// An engine on the scripted runner and a manual clock, whose invariants are checked after every
// step.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/engine/engine.h"
#include "tests/engine/fake_tokenizer.h"
#include "tests/engine/scripted_runner.h"

namespace llm {

// Every reading of it differs, so that no two moments of a step are taken for one.
class TickingClock : public ManualClock {
 public:
  int64_t NowNs() const override { return ManualClock::NowNs() + ticks_.fetch_add(1); }

 private:
  mutable std::atomic<int64_t> ticks_{0};
};

struct HarnessOptions {
  EngineOptions engine;
  SchedulerOptions scheduler;
  std::shared_ptr<ManualClock> clock;  // null: a new one
  ByteModel bytes;                     // what a step moves
  SpillOptions spill;
  bool run_ahead = false;  // the runner begins steps before they are asked for
  HarnessOptions();
};

// Everything that was delivered of one request, or of one of its choices.
struct Received {
  std::vector<int32_t> ids;
  std::vector<TokenLogprob> logprobs;
  std::vector<int32_t> prompt_ids;  // of PROMPT events, as the next
  std::vector<TokenLogprob> prompt_logprobs;
  std::string text;
  int num_prompt_events = 0;
  int num_events = 0;
  int num_finished = 0;
  bool token_after_finish = false;
  bool prompt_after_token = false;
  FinishReason reason = FinishReason::kNone;
  absl::StatusCode status = absl::StatusCode::kOk;
  std::string message;
  int32_t stop_index = -1;
  RequestStats stats;

  // `last`: kChoiceFinished for what collects one choice.
  void Add(const Event& event, EventType last = EventType::kFinished);
};

class EngineHarness {
 public:
  explicit EngineHarness(const HarnessOptions& options = HarnessOptions());
  ~EngineHarness();

  Engine& engine() { return *engine_; }
  ScriptedRunner& runner() { return *runner_; }
  ManualClock& clock() { return *clock_; }
  SpillTier& spill() { return *spill_; }
  const FakeTokenizer& tokenizer() const { return *tokenizer_; }

  // A spec of a text prompt, greedy, that never meets the end token.
  RequestSpec Spec(absl::string_view text, int32_t max_new_tokens) const;
  // Submits, and fails the test when that is refused.
  uint64_t Submit(const RequestSpec& spec);
  // One step; checks invariants. True when it worked.
  bool Step();
  // Steps until there is nothing to do.
  void RunAll();
  // Takes what the engine's own queue holds.
  void Poll(size_t capacity = 64);
  Received& Of(uint64_t id) { return received_[id]; }
  Received& Of(uint64_t id, uint32_t choice) { return choices_[{id, choice}]; }
  void CheckInvariants();
  // Sums over what was received equal the engine's totals; the destructor calls it.
  void CheckCounters();
  std::map<uint64_t, Received>& received() { return received_; }

 private:
  const HarnessOptions options_;
  std::shared_ptr<ManualClock> clock_;
  std::unique_ptr<FakeTokenizer> tokenizer_;
  ScriptedRunner* runner_ = nullptr;
  SpillTier* spill_ = nullptr;  // null: none
  std::unique_ptr<Engine> engine_;
  std::map<uint64_t, Received> received_;
  std::map<std::pair<uint64_t, uint32_t>, Received> choices_;
};

// The answer to `spec` in a fresh engine without cache, in one chunk.
Received RunAlone(const HarnessOptions& options, const RequestSpec& spec);

}  // namespace llm
