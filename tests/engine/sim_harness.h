// An engine on a simulated device: a manual clock that steps move by what they cost.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/engine/engine.h"
#include "src/engine/sim_runner.h"
#include "tests/engine/engine_harness.h"

namespace llm {

inline constexpr int64_t kMs = 1'000'000;

// 1 ms a step, 10 us a decode, 0.1 ms a prompt token.
inline constexpr StepCostModel::Coefficients kSimCost = {
    .fixed = 1e6, .decode_row = 1e4, .prefill_token = 1e5};

class SimHarness {
 public:
  explicit SimHarness(HarnessOptions options = HarnessOptions()) {
    EngineParts parts;
    parts.text.tokenizer = &tokenizer_;
    parts.text.vocab_size = kFakeVocab;
    parts.text.end_ids = {kFakeEnd};
    parts.virtual_clock = clock_;
    parts.clock = clock_;
    parts.runner = std::make_unique<SimRunner>(kSimCost, kFakeVocab, clock_);
    parts.scheduler = std::move(Scheduler::Create(options.scheduler)).value();
    engine_ = std::move(Engine::Create(std::move(parts), options.engine)).value();
  }
  ~SimHarness() { EXPECT_TRUE(engine_->Close().ok()); }

  Engine& engine() { return *engine_; }
  ManualClock& clock() { return *clock_; }
  int64_t now_ns() const { return clock_->NowNs(); }

  // A prompt of its own, which no other shares.
  RequestSpec Spec(size_t num_tokens, int32_t max_new_tokens) {
    prompts_.emplace_back(num_tokens);
    for (int32_t& id : prompts_.back()) {
      id = static_cast<int32_t>((++next_id_ * 0x9e3779b97f4a7c15u >> 40) % 60);
    }
    RequestSpec spec;
    spec.prompt_kind = PromptKind::kIds;
    spec.prompt_ids = prompts_.back();
    spec.max_new_tokens = max_new_tokens;
    spec.ignore_eos = true;
    return spec;
  }
  absl::Status TrySubmit(const RequestSpec& spec, uint64_t* id) {
    return engine_->Submit(spec, id);
  }
  uint64_t Submit(const RequestSpec& spec) {
    uint64_t id = 0;
    const absl::Status status = engine_->Submit(spec, &id);
    EXPECT_TRUE(status.ok()) << status;
    return id;
  }
  bool Step() {
    const absl::StatusOr<bool> worked = engine_->Step();
    EXPECT_TRUE(worked.ok()) << worked.status();
    EXPECT_TRUE(engine_->scheduler().CheckInvariants().ok());
    Poll();
    return worked.ok() && *worked;
  }
  void RunAll() {
    for (int i = 0; i < 100000 && Step(); ++i) {
    }
  }
  // Lets the engine learn what steps cost, and that outputs are two tokens long.
  void WarmUp() {
    for (size_t i = 0; i < 12; ++i) {
      Submit(Spec(8 + 4 * i, 2));
      RunAll();
    }
  }
  Received& Of(uint64_t id) { return received_[id]; }
  EngineMetrics Metrics() const { return engine_->Metrics(); }

 private:
  void Poll() {
    const absl::StatusOr<size_t> count = engine_->queue()->Poll(
        1024, 0, [this](size_t, const Event& event) { received_[event.id].Add(event); });
    EXPECT_TRUE(count.ok());
  }

  FakeTokenizer tokenizer_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::vector<std::vector<int32_t>> prompts_;
  uint64_t next_id_ = 0;
  std::unique_ptr<Engine> engine_;
  std::map<uint64_t, Received> received_;
};

}  // namespace llm
