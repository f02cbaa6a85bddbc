// Deadlines on a clock that only steps move: refused, ordered, dropped, cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/sim_harness.h"

namespace llm {
namespace {

using testing::HasSubstr;

HarnessOptions Options() {
  HarnessOptions options;
  options.engine.max_step_tokens = 64;
  options.engine.refuse_late = true;
  options.engine.max_context_tokens = 512;
  options.scheduler.max_context_tokens = 512;
  options.scheduler.num_blocks = {1024};
  return options;
}

class DeadlineTest : public testing::Test {
 protected:
  void Open(const HarnessOptions& options) {
    harness_ = std::make_unique<SimHarness>(options);
    harness_->WarmUp();
  }
  void SetUp() override { Open(Options()); }

  RequestSpec Timed(size_t num_tokens, int64_t deadline_ns, int32_t max_new_tokens = 2) {
    RequestSpec spec = harness_->Spec(num_tokens, max_new_tokens);
    spec.first_token_timeout_ns = deadline_ns;
    return spec;
  }
  std::string Refused(const RequestSpec& spec) {
    uint64_t id = 0;
    const absl::Status status = harness_->TrySubmit(spec, &id);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(id, 0u);
    return std::string(status.message());
  }

  std::unique_ptr<SimHarness> harness_;
};

TEST_F(DeadlineTest, APromptThatTakesLongerAloneIsRefusedAtOnceWithThePrediction) {
  // 195 tokens in 4 steps: 23.5 ms.
  const std::string message = Refused(Timed(195, 20 * kMs));
  EXPECT_THAT(message, HasSubstr("first_token_deadline_ns: 20 ms"));
  EXPECT_THAT(message, HasSubstr("predicted in 24 ms"));
  EXPECT_THAT(message, HasSubstr("24 ms alone"));
  EXPECT_EQ(harness_->Metrics().rejected.late, 1u);
  EXPECT_EQ(harness_->Metrics().rejected_requests_total, 1u);
}

TEST_F(DeadlineTest, AnIdleEngineTriesAgainWhatItMeasuredLongAgo) {
  Refused(Timed(195, 20 * kMs));
  harness_->clock().AdvanceNs(2000 * kMs);
  harness_->Submit(Timed(195, 20 * kMs));
  Refused(Timed(195, 20 * kMs));
  harness_->RunAll();
}

TEST_F(DeadlineTest, ADeadlineThatCanBeMetIsMetAsPredicted) {
  const int64_t start_ns = harness_->now_ns();
  const uint64_t id = harness_->Submit(Timed(200, 25 * kMs));
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(id).status, absl::StatusCode::kOk);
  EXPECT_EQ(harness_->Of(id).stats.ttft_ns, 24 * kMs);
  EXPECT_GT(harness_->now_ns(), start_ns);
}

TEST_F(DeadlineTest, TheQueueAheadCountsAndTheMessageSaysWhenToComeBack) {
  for (int i = 0; i < 4; ++i) harness_->Submit(harness_->Spec(200, 2));
  const std::string message = Refused(Timed(200, 60 * kMs));
  EXPECT_THAT(message, HasSubstr("submit again in"));
  harness_->RunAll();
  harness_->Submit(Timed(200, 60 * kMs));
  harness_->RunAll();
}

TEST_F(DeadlineTest, ALongRequestBehindTheCapIsRefusedWhereAShortOneIsNot) {
  HarnessOptions options = Options();
  options.scheduler.max_long_sequences = 1;
  options.scheduler.long_tokens = 100;
  options.scheduler.admission = AdmissionPolicy::kReserve;
  Open(options);
  harness_->Submit(harness_->Spec(150, 200));
  for (int i = 0; i < 5; ++i) harness_->Step();
  Refused(Timed(120, 100 * kMs));
  const uint64_t quick = harness_->Submit(Timed(50, 100 * kMs));
  const uint64_t patient = harness_->Submit(Timed(120, 300 * kMs));
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(quick).status, absl::StatusCode::kOk);
  EXPECT_EQ(harness_->Of(patient).status, absl::StatusCode::kOk);
}

TEST_F(DeadlineTest, AShortPromptSharesStepsWithLongOnesAndIsNotRefused) {
  for (int i = 0; i < 2; ++i) harness_->Submit(harness_->Spec(400, 2));
  harness_->Step();
  const uint64_t id = harness_->Submit(Timed(8, 20 * kMs));
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(id).status, absl::StatusCode::kOk);
}

TEST_F(DeadlineTest, WhatIsCachedCostsNothing) {
  RequestSpec spec = Timed(400, 0);
  harness_->Submit(spec);
  harness_->RunAll();
  spec.first_token_timeout_ns = 5 * kMs;
  const uint64_t id = harness_->Submit(spec);
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(id).status, absl::StatusCode::kOk);
  EXPECT_LE(harness_->Of(id).stats.ttft_ns, 5 * kMs);
}

TEST_F(DeadlineTest, ACompletionDeadlineBeforeTheFirstTokenRefusesToo) {
  RequestSpec spec = harness_->Spec(200, 2);
  spec.completion_timeout_ns = 20 * kMs;
  EXPECT_THAT(Refused(spec), HasSubstr("completion_deadline_ns: 20 ms"));
}

TEST_F(DeadlineTest, WhoHasToStartFirstGoesFirst) {
  HarnessOptions options = Options();
  options.scheduler.policy = SchedulingPolicy::kDeadline;
  options.scheduler.max_sequences = 1;
  Open(options);
  harness_->Submit(harness_->Spec(8, 2));
  // The later deadline has less to spare: 300 tokens take 35 ms.
  const uint64_t by_short = harness_->Submit(Timed(8, 70 * kMs));
  const uint64_t by_long = harness_->Submit(Timed(300, 80 * kMs));
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(by_short).status, absl::StatusCode::kOk);
  EXPECT_EQ(harness_->Of(by_long).status, absl::StatusCode::kOk);
  EXPECT_GT(harness_->Of(by_short).stats.queue_ns, harness_->Of(by_long).stats.queue_ns);
}

TEST_F(DeadlineTest, WhoCannotMakeItAnyMoreLeavesTheQueueBeforeTheDeadline) {
  HarnessOptions options = Options();
  options.scheduler.max_sequences = 1;
  Open(options);
  harness_->Submit(harness_->Spec(8, 200));  // much longer than those before it
  harness_->Step();
  const int64_t start_ns = harness_->now_ns();
  const uint64_t id = harness_->Submit(Timed(200, 200 * kMs));
  const int64_t latest_ns = start_ns + (200 - 24) * kMs;
  while (harness_->Of(id).num_finished == 0) ASSERT_TRUE(harness_->Step());
  EXPECT_EQ(harness_->Of(id).reason, FinishReason::kDeadline);
  EXPECT_THAT(harness_->Of(id).message, HasSubstr("any more"));
  EXPECT_GT(harness_->Of(id).stats.total_ns, latest_ns - start_ns);
  EXPECT_LT(harness_->Of(id).stats.total_ns, 180 * kMs);
  EXPECT_EQ(harness_->Metrics().step.hopeless_requests_total, 1u);
  EXPECT_EQ(harness_->Metrics().step.deadlines_by_stage[0], 1u);
  harness_->RunAll();
}

TEST_F(DeadlineTest, APrefixThatOthersComputeMeanwhileIsLookedUpBeforeAnybodyIsGivenUp) {
  HarnessOptions options = Options();
  options.scheduler.max_sequences = 1;
  Open(options);
  RequestSpec spec = Timed(200, 0, 30);
  harness_->Submit(spec);  // 24 ms, then 29 decodes
  spec.first_token_timeout_ns = 58 * kMs;
  spec.max_new_tokens = 2;
  harness_->Step();
  const uint64_t id = harness_->Submit(spec);
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(id).status, absl::StatusCode::kOk) << harness_->Of(id).message;
  EXPECT_GT(harness_->Of(id).stats.ttft_ns, (58 - 24) * kMs);
}

TEST_F(DeadlineTest, WithoutRefusalsARequestEndsWhenItsDeadlineHasPassed) {
  HarnessOptions options = Options();
  options.engine.refuse_late = false;
  Open(options);
  const uint64_t id = harness_->Submit(Timed(200, 20 * kMs));
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(id).reason, FinishReason::kDeadline);
  EXPECT_GE(harness_->Of(id).stats.total_ns, 20 * kMs);
  EXPECT_EQ(harness_->Metrics().step.deadlines_by_stage[1], 1u);
}

TEST_F(DeadlineTest, WhoIsCutWhileItRunsKeepsWhatItHas) {
  RequestSpec spec = harness_->Spec(8, 100);
  spec.completion_timeout_ns = 20 * kMs;
  const uint64_t id = harness_->Submit(spec);
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(id).reason, FinishReason::kDeadline);
  EXPECT_EQ(harness_->Of(id).status, absl::StatusCode::kDeadlineExceeded);
  EXPECT_GT(harness_->Of(id).ids.size(), 10u);
  EXPECT_EQ(harness_->Metrics().step.deadlines_by_stage[2], 1u);
}

TEST_F(DeadlineTest, AFullQueueSaysWhenARequestIsExpectedToEnd) {
  HarnessOptions options = Options();
  options.engine.bounds.max_requests = 1;
  Open(options);
  harness_->Submit(harness_->Spec(8, 2));
  harness_->Step();
  uint64_t id = 0;
  const absl::Status status = harness_->TrySubmit(harness_->Spec(8, 2), &id);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected in 1010 us"));
  harness_->RunAll();
}

TEST_F(DeadlineTest, RequestsCountAsGoodWhenTheyMeetAllThatTheyStated) {
  const uint64_t before = harness_->Metrics().step.targets.good_requests;
  RequestSpec good = Timed(8, 20 * kMs, 4);
  good.token_gap_target_ns = 2 * kMs;
  good.completion_timeout_ns = 50 * kMs;
  harness_->Submit(good);
  harness_->RunAll();
  RequestSpec gaps = harness_->Spec(8, 4);
  gaps.token_gap_target_ns = kMs / 2;  // no step is as short
  const uint64_t id = harness_->Submit(gaps);
  harness_->RunAll();
  EXPECT_EQ(harness_->Of(id).stats.longest_gap_ns, kMs + kMs / 100) << "a step and a row";
  const TargetCounters targets = harness_->Metrics().step.targets;
  EXPECT_EQ(targets.good_requests, before + 1);
  EXPECT_EQ(targets.stated[static_cast<size_t>(Target::kFirstToken)], 1u);
  EXPECT_EQ(targets.met[static_cast<size_t>(Target::kFirstToken)], 1u);
  EXPECT_EQ(targets.stated[static_cast<size_t>(Target::kTokenGap)], 2u);
  EXPECT_EQ(targets.met[static_cast<size_t>(Target::kTokenGap)], 1u);
  EXPECT_EQ(targets.met[static_cast<size_t>(Target::kCompletion)], 1u);
}

TEST(TargetsTest, OnlyWhatGeneratesIsHeldToTheTokenGapOfTheEngine) {
  HarnessOptions options;
  options.engine.token_gap_target_ns = 2 * kMs;
  EngineHarness harness(options);
  ScoreHandler handler;
  handler.call = [](void*, void*, const ScoreRow&) -> int32_t { return 0; };
  const std::vector<int32_t> text = harness.tokenizer().Ids("abcd");
  ScoreSpec score;
  score.prompt_kind = PromptKind::kIds;
  score.ids = text;
  score.handler = handler;
  const absl::Status scored = harness.engine().Score(score).status();
  ASSERT_TRUE(scored.ok()) << scored;
  harness.Submit(harness.Spec("abc", 4));
  harness.RunAll();
  const TargetCounters targets = harness.engine().Metrics().step.targets;
  EXPECT_EQ(targets.stated[static_cast<size_t>(Target::kTokenGap)], 1u);
  EXPECT_EQ(targets.met[static_cast<size_t>(Target::kTokenGap)], 1u);
}

TEST_F(DeadlineTest, ClassesAreCountedApartUpToABound) {
  RequestSpec spec = Timed(8, 20 * kMs, 4);
  spec.request_class = 7;
  harness_->Submit(spec);
  harness_->RunAll();
  const auto of = [this](uint32_t id) { return *harness_->Metrics().step.classes.Of(id); };
  EXPECT_EQ(of(7).finished_requests, 1u);
  EXPECT_EQ(of(7).good_requests, 1u);
  EXPECT_EQ(of(7).generated_tokens, 4u);
  const ClassCounters::Class seven = of(7);
  EXPECT_EQ(seven.Of(HistogramId::kTtft)->count, 1u);
  EXPECT_EQ(seven.Of(HistogramId::kTtft)->sum, static_cast<uint64_t>(1.8 * kMs));
  EXPECT_EQ(seven.Of(HistogramId::kTokenGap)->count, 3u);
  EXPECT_EQ(seven.Of(HistogramId::kCompletionTime)->count, 1u);
  EXPECT_EQ(seven.Of(HistogramId::kQueueTime), nullptr);
  for (uint32_t id = 100; id < 200; ++id) {
    spec.request_class = id;
    harness_->Submit(spec);
    harness_->RunAll();
  }
  const EngineMetrics metrics = harness_->Metrics();
  uint64_t finished = 0;
  for (const ClassCounters::Class& one : metrics.step.classes.classes()) {
    finished += one.finished_requests;
  }
  EXPECT_EQ(metrics.step.classes.classes().size(), ClassCounters::kMaxClasses);
  EXPECT_EQ(finished, metrics.step.finished_requests_total);
}

}  // namespace
}  // namespace llm
