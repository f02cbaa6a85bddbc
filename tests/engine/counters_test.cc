// Counters: what each counts, and that sums over requests equal the engine's totals.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

constexpr int64_t kMs = 1'000'000;

const Histogram& Of(const EngineMetrics& metrics, HistogramId id) {
  return metrics.step.histograms.Of(id);
}

TEST(CountersTest, SumsOverRequestsEqualTheEnginesTotals) {
  EngineHarness harness;
  harness.runner().step_ns = 7 * kMs;
  for (int i = 0; i < 12; ++i) {
    harness.Submit(harness.Spec(std::string(static_cast<size_t>(3 + 5 * i), 'a'), 1 + i));
    if (i % 3 == 0) harness.Step();
  }
  harness.RunAll();
  const EngineMetrics metrics = harness.engine().Metrics();
  uint64_t queue_ns = 0;
  uint64_t ttft_ns = 0;
  uint64_t total_ns = 0;
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  for (const auto& [id, received] : harness.received()) {
    queue_ns += static_cast<uint64_t>(received.stats.queue_ns);
    ttft_ns += static_cast<uint64_t>(received.stats.ttft_ns);
    total_ns += static_cast<uint64_t>(received.stats.total_ns);
    prompt_tokens += static_cast<uint64_t>(received.stats.prompt_tokens);
    generated_tokens += received.ids.size();
  }
  EXPECT_EQ(Of(metrics, HistogramId::kQueueTime).sum, queue_ns);
  EXPECT_EQ(static_cast<uint64_t>(metrics.step.request_ns_total.queue_ns), queue_ns);
  EXPECT_EQ(Of(metrics, HistogramId::kTtft).sum, ttft_ns);
  EXPECT_EQ(metrics.step.ttft_ns_total, ttft_ns);
  EXPECT_EQ(Of(metrics, HistogramId::kCompletionTime).sum, total_ns);
  EXPECT_EQ(Of(metrics, HistogramId::kPromptTokens).sum, prompt_tokens);
  EXPECT_EQ(metrics.step.prompt_tokens_total, prompt_tokens);
  EXPECT_EQ(Of(metrics, HistogramId::kGeneratedTokens).sum, generated_tokens);
  EXPECT_EQ(metrics.step.generated_tokens_total, generated_tokens);
  // Queue, prefill and decode are a request's whole time, and the gaps its decode.
  EXPECT_EQ(queue_ns + Of(metrics, HistogramId::kPrefillTime).sum +
                Of(metrics, HistogramId::kDecodeTime).sum,
            total_ns);
  EXPECT_EQ(Of(metrics, HistogramId::kTokenGap).sum, Of(metrics, HistogramId::kDecodeTime).sum);
  EXPECT_EQ(Of(metrics, HistogramId::kTokenGap).count, generated_tokens - 12);
  EXPECT_EQ(Of(metrics, HistogramId::kCompletionTime).count, 12u);
  EXPECT_EQ(Of(metrics, HistogramId::kStepTokens).count, metrics.step.steps_total);
  EXPECT_EQ(Of(metrics, HistogramId::kStepTokens).sum, metrics.step.scheduled_tokens_total);
}

TEST(CountersTest, TimesFallIntoTheirBuckets) {
  EngineHarness harness;
  harness.runner().step_ns = 30 * kMs;
  harness.Submit(harness.Spec("abc", 3));
  harness.RunAll();
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(Of(metrics, HistogramId::kTtft).buckets[4], 1u) << "above 20, up to 40 ms";
  EXPECT_EQ(Of(metrics, HistogramId::kTokenGap).buckets[2], 2u) << "above 25, up to 50 ms";
  EXPECT_EQ(Of(metrics, HistogramId::kCompletionTime).buckets[0], 1u) << "up to 300 ms";
}

TEST(CountersTest, AStepsBatchIsCountedByTokensAndRequests) {
  EngineHarness harness;
  harness.Submit(harness.Spec("abc", 2));
  harness.Submit(harness.Spec("abcde", 2));
  harness.RunAll();
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(Of(metrics, HistogramId::kStepSequences).count, 2u);
  EXPECT_EQ(Of(metrics, HistogramId::kStepSequences).buckets[1], 2u) << "two requests each";
  EXPECT_EQ(Of(metrics, HistogramId::kStepTokens).buckets[1], 2u) << "8 tokens, then 2";
}

TEST(CountersTest, RejectedRequestsAreCountedByReason) {
  HarnessOptions options;
  options.engine.bounds.max_requests = 1;
  EngineHarness harness(options);
  uint64_t id = 0;
  RequestSpec chat = harness.Spec("[]", 4);
  chat.prompt_kind = PromptKind::kChat;
  EXPECT_FALSE(harness.engine().Submit(chat, &id).ok());
  EXPECT_FALSE(harness.engine().Submit(harness.Spec("abc", 1000), &id).ok());
  harness.Submit(harness.Spec("abc", 1));
  EXPECT_FALSE(harness.engine().Submit(harness.Spec("abc", 1), &id).ok());
  EXPECT_FALSE(harness.engine().Submit(harness.Spec("abc", 1), &id).ok());
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(metrics.rejected.other, 1u);
  EXPECT_EQ(metrics.rejected.invalid, 1u);
  EXPECT_EQ(metrics.rejected.full, 2u);
  EXPECT_EQ(metrics.rejected_requests_total, 4u);
  harness.RunAll();
}

TEST(CountersTest, DeadlineMissesAreCountedByStage) {
  EngineHarness harness;
  harness.runner().step_ns = 10;
  RequestSpec queued = harness.Spec("abc", 5);
  queued.first_token_timeout_ns = 5;
  harness.Submit(queued);
  harness.clock().AdvanceNs(6);
  harness.RunAll();

  const std::string prompt(100, 'a');  // 7 steps of 16 tokens
  RequestSpec prefill = harness.Spec(prompt, 5);
  prefill.first_token_timeout_ns = 25;
  harness.Submit(prefill);
  harness.RunAll();

  RequestSpec decode = harness.Spec("xyz", 50);
  decode.completion_timeout_ns = 55;
  harness.Submit(decode);
  harness.RunAll();

  const StepCounters step = harness.engine().Metrics().step;
  EXPECT_EQ(step.deadline_requests_total, 3u);
  for (size_t stage = 0; stage < kNumRequestStages; ++stage) {
    EXPECT_EQ(step.deadlines_by_stage[stage], 1u) << kRequestStageNames[stage];
  }
}

TEST(CountersTest, BusyTimeIsTheTimeOfWorkingStepsByPart) {
  EngineHarness harness;
  harness.runner().step_ns = 50;
  harness.Submit(harness.Spec("abc", 4));
  harness.RunAll();
  harness.clock().AdvanceNs(1'000'000);
  harness.Step();  // nothing to do
  const StepCounters step = harness.engine().Metrics().step;
  EXPECT_EQ(step.part_ns_total[static_cast<size_t>(StepPart::kForward)], 4u * 50);
  EXPECT_EQ(step.BusyNs(), 4u * 50) << "this clock moves in the forward alone";
}

TEST(CountersTest, FinishesAreCountedByReason) {
  EngineHarness harness;
  const uint64_t cancelled = harness.Submit(harness.Spec("abc", 50));
  harness.Submit(harness.Spec("abc", 2));
  harness.Step();
  EXPECT_TRUE(harness.engine().Cancel(cancelled).ok());
  harness.RunAll();
  const StepCounters step = harness.engine().Metrics().step;
  EXPECT_EQ(step.finished_by_reason[static_cast<size_t>(FinishReason::kCancelled)], 1u);
  EXPECT_EQ(step.finished_by_reason[static_cast<size_t>(FinishReason::kLength)], 1u);
  EXPECT_EQ(step.finished_requests_total, 2u);
}

}  // namespace
}  // namespace llm
