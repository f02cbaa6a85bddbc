// Builds the engine, and collects its events.
#include "tests/engine/engine_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/engine/reconcile.h"

namespace llm {

HarnessOptions::HarnessOptions() {
  engine.manual = true;
  engine.max_step_tokens = 16;
  engine.max_context_tokens = 256;
  engine.refuse_late =
      false;  // costs are measured in real time, of which the manual clock knows none
  scheduler.max_sequences = 8;
  scheduler.max_context_tokens = 256;
  scheduler.block_size = 4;
  scheduler.groups = {KvGroupSpec{0, {0}}};
  scheduler.num_blocks = {128};
}

void Received::Add(const Event& event, EventType last) {
  ++num_events;
  token_after_finish |= num_finished > 0;
  if (event.type == EventType::kPrompt) {
    ++num_prompt_events;
    prompt_after_token |= !ids.empty() || !text.empty() || !event.text.empty();
    EXPECT_EQ(event.logprobs.size(),
              event.token_ids.size() * static_cast<size_t>(event.logprobs_per_token));
    prompt_ids.insert(prompt_ids.end(), event.token_ids.begin(), event.token_ids.end());
    prompt_logprobs.insert(prompt_logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    return;
  }
  ids.insert(ids.end(), event.token_ids.begin(), event.token_ids.end());
  logprobs.insert(logprobs.end(), event.logprobs.begin(), event.logprobs.end());
  text.append(event.text.data(), event.text.size());
  if (event.type != last) return;
  ++num_finished;
  reason = event.reason;
  status = event.status;
  message = std::string(event.message);
  stop_index = event.stop_index;
  stats = *event.stats;
  ExpectWholeTime(stats);
}

EngineHarness::EngineHarness(const HarnessOptions& options)
    : options_(options),
      clock_(options.clock != nullptr ? options.clock : std::make_shared<ManualClock>()),
      tokenizer_(std::make_unique<FakeTokenizer>()) {
  EngineParts parts;
  parts.text.tokenizer = tokenizer_.get();
  parts.text.vocab_size = kFakeVocab;
  parts.text.hidden_size = kFakeHidden;
  parts.text.end_ids = {kFakeEnd};
  parts.clock = clock_;
  parts.bytes = options.bytes;
  auto runner = std::make_unique<ScriptedRunner>(options.scheduler, kFakeVocab, clock_);
  runner_ = runner.get();
  runner_->end_id = kFakeEnd;
  runner_->run_ahead = options.run_ahead;
  parts.kv.numerics_id = "scripted";
  parts.kv.kv_dtype = "u64";
  parts.kv.shape.block_size = options.scheduler.block_size;
  for (size_t g = 0; g < options.scheduler.groups.size(); ++g) {
    parts.kv.shape.groups.push_back({.window = options.scheduler.groups[g].window,
                                     .num_layers = 1,
                                     .block_bytes = runner->block_bytes(static_cast<int>(g))});
  }
  if (!options.spill.folder.empty()) {
    absl::StatusOr<std::unique_ptr<SpillTier>> spill =
        SpillTier::Create(options.spill, parts.kv.shape, runner.get(), clock_, Logger());
    EXPECT_TRUE(spill.ok()) << spill.status();
    parts.spill = *std::move(spill);
    parts.device_clock = clock_;  // whether a return pays must not depend on the machine
    runner->token_ns = 1000;
    spill_ = parts.spill.get();
  }
  parts.runner = std::move(runner);
  absl::StatusOr<std::unique_ptr<Scheduler>> scheduler = Scheduler::Create(options.scheduler);
  EXPECT_TRUE(scheduler.ok()) << scheduler.status();
  parts.scheduler = *std::move(scheduler);
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(std::move(parts), options.engine);
  EXPECT_TRUE(engine.ok()) << engine.status();
  engine_ = *std::move(engine);
}

EngineHarness::~EngineHarness() {
  EXPECT_EQ(runner_->error(), "");
  EXPECT_TRUE(engine_->Close().ok());
  Poll();
  for (const auto& [id, received] : received_) {
    EXPECT_LE(received.num_finished, 1) << "request " << id;
    EXPECT_FALSE(received.token_after_finish) << "request " << id;
  }
  for (const auto& [key, received] : choices_) {
    EXPECT_LE(received.num_finished, 1) << "request " << key.first << " choice " << key.second;
    EXPECT_FALSE(received.token_after_finish) << "request " << key.first;
    EXPECT_FALSE(received.prompt_after_token) << "request " << key.first;
  }
  CheckCounters();
}

void EngineHarness::CheckCounters() {
  const EngineMetrics metrics = engine_->Metrics();
  const StepCounters& step = metrics.step;
  const auto of = [&](HistogramId id) { return step.histograms.Of(id); };
  EXPECT_EQ(of(HistogramId::kStepTokens).count, step.steps_total);
  EXPECT_EQ(of(HistogramId::kStepTokens).sum, step.scheduled_tokens_total);
  EXPECT_EQ(of(HistogramId::kCompletionTime).count, step.finished_requests_total);
  EXPECT_EQ(of(HistogramId::kTtft).count, step.ttft_requests_total);
  for (const HistogramId id : kClassHistograms) {
    uint64_t count = 0;
    uint64_t sum = 0;
    for (const ClassCounters::Class& one : step.classes.classes()) {
      count += one.Of(id)->count;
      sum += one.Of(id)->sum;
    }
    EXPECT_EQ(count, of(id).count);
    EXPECT_EQ(sum, of(id).sum);
  }
  ExpectLogReconciled(engine_->log(), metrics);
  std::vector<RequestStats> finished;
  for (const auto& [id, received] : received_) {
    if (received.num_finished > 0) finished.push_back(received.stats);
  }
  if (finished.size() != step.finished_requests_total) return;  // others went elsewhere
  ExpectReconciled(finished, metrics);
}

RequestSpec EngineHarness::Spec(absl::string_view text, int32_t max_new_tokens) const {
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kText;
  spec.text = text;
  spec.max_new_tokens = max_new_tokens;
  spec.ignore_eos = true;
  return spec;
}

uint64_t EngineHarness::Submit(const RequestSpec& spec) {
  uint64_t id = 0;
  const absl::Status status = engine_->Submit(spec, &id);
  EXPECT_TRUE(status.ok()) << status;
  return id;
}

bool EngineHarness::Step() {
  const absl::StatusOr<bool> worked = engine_->Step();
  EXPECT_TRUE(worked.ok()) << worked.status();
  CheckInvariants();
  return worked.ok() && *worked;
}

void EngineHarness::CheckInvariants() {
  if (engine_->loop().healthy()) {
    const absl::Status status = engine_->scheduler().CheckInvariants();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_LE(engine_->loop().last_step_tokens(), options_.engine.max_step_tokens);
  EXPECT_EQ(runner_->error(), "");
  const EngineMetrics metrics = engine_->Metrics();
  EXPECT_GE(metrics.submitted_requests_total, metrics.step.finished_requests_total);
  for (const auto& request : engine_->loop().active()) {
    EXPECT_TRUE(request->open());
    EXPECT_EQ(Of(request->request.id).num_finished, 0) << "an open request was finished";
  }
}

void EngineHarness::RunAll() {
  for (int i = 0; i < 100000; ++i) {
    if (!Step()) return;
    Poll();
  }
  FAIL() << "the engine never becomes idle";
}

void EngineHarness::Poll(size_t capacity) {
  while (true) {
    const absl::StatusOr<size_t> count =
        engine_->queue()->Poll(capacity, 0, [this](size_t, const Event& event) {
          received_[event.id].Add(event);
          if (event.type == EventType::kFinished) return;
          EXPECT_EQ(received_[event.id].num_finished, 0) << "request " << event.id;
          choices_[{event.id, event.choice}].Add(event, EventType::kChoiceFinished);
        });
    ASSERT_TRUE(count.ok()) << count.status();
    if (*count == 0) return;
  }
}

Received RunAlone(const HarnessOptions& options, const RequestSpec& spec) {
  HarnessOptions alone = options;
  alone.scheduler.prefix_cache = false;
  alone.scheduler.policy = SchedulingPolicy::kFcfs;
  alone.scheduler.max_long_sequences = 0;
  alone.engine.max_step_tokens = options.scheduler.max_context_tokens;
  alone.engine.hold_ns = 0;
  alone.spill = SpillOptions();
  for (int& blocks : alone.scheduler.num_blocks) {
    blocks =
        std::max(blocks, options.scheduler.max_context_tokens / options.scheduler.block_size + 1);
  }
  EngineHarness harness(alone);
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).num_finished, 1);
  return harness.Of(id);
}

}  // namespace llm
