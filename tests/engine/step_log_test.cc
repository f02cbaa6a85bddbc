// The rings: what each record tells. That they add up to the totals is checked when a harness ends.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

std::vector<StepRecord> Steps(EngineHarness* harness) {
  std::vector<StepRecord> steps;
  uint64_t cursor = 0;
  harness->engine().log().steps().Read(&cursor, kStepRingRecords,
                                       [&](const StepRecord& r) { steps.push_back(r); });
  return steps;
}

std::vector<RequestRecord> Records(EngineHarness* harness) {
  std::vector<RequestRecord> records;
  uint64_t cursor = 0;
  harness->engine().log().requests().Read(&cursor, kRequestRingRecords,
                                          [&](const RequestRecord& r) { records.push_back(r); });
  return records;
}

std::vector<RecordKind> KindsOf(EngineHarness* harness, uint64_t id) {
  std::vector<RecordKind> kinds;
  for (const RequestRecord& record : Records(harness)) {
    if (record.id == id) kinds.push_back(record.kind);
  }
  return kinds;
}

TEST(StepLogTest, AStepsRecordTellsItsBatchAndTime) {
  EngineHarness harness;
  harness.runner().step_ns = 10;
  harness.Submit(harness.Spec(std::string(20, 'a'), 3));
  harness.Submit(harness.Spec("xyz", 3));
  harness.RunAll();
  const std::vector<StepRecord> steps = Steps(&harness);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].prefill_tokens, 16u);
  EXPECT_EQ(steps[0].prefill_sequences, 1u);
  EXPECT_EQ(steps[0].prefill_tokens_squared, 256u);
  EXPECT_EQ(steps[0].waiting_prefill_sequences, 1u);
  EXPECT_EQ(steps[0].waiting_prefill_tokens, 3u);
  EXPECT_EQ(steps[0].forward_ns, 10);
  EXPECT_EQ(steps[0].host_ns, 0);
  EXPECT_EQ(steps[1].prefill_sequences, 2u);
  EXPECT_EQ(steps[1].prefill_tokens, 7u);
  EXPECT_EQ(steps[1].prefill_context_tokens, 20u + 3);
  EXPECT_EQ(steps[1].generated_tokens, 2u);
  EXPECT_EQ(steps[2].decode_sequences, 2u);
  EXPECT_EQ(steps[2].decode_context_tokens, 21u + 4);
  EXPECT_EQ(steps[2].decode_context_tokens_squared, 441u + 16);
  EXPECT_EQ(steps[2].held_blocks, 6u + 1) << "of 4 tokens";
  EXPECT_EQ(steps[3].held_blocks, 0u);
}

TEST(StepLogTest, ARequestsRecordsTellItsWay) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(harness.Spec(std::string(20, 'a'), 2));
  harness.RunAll();
  EXPECT_EQ(
      KindsOf(&harness, id),
      (std::vector<RecordKind>{RecordKind::kEnqueued, RecordKind::kAdmitted,
                               RecordKind::kPrefillChunk, RecordKind::kPrefillChunk,
                               RecordKind::kTokens, RecordKind::kTokens, RecordKind::kFinished}));
  const std::vector<RequestRecord> records = Records(&harness);
  EXPECT_EQ(records.front().tokens, 20u);
  EXPECT_EQ(records[3].tokens, 4u);
  EXPECT_EQ(records[3].detail, 16);
  EXPECT_EQ(records.back().tokens, 2u);
  EXPECT_EQ(records.back().detail, static_cast<int64_t>(FinishReason::kLength));
}

TEST(StepLogTest, CachedTokensAreRecordedAtAdmission) {
  EngineHarness harness;
  harness.Submit(harness.Spec(std::string(12, 'a'), 1));
  harness.RunAll();
  const uint64_t again = harness.Submit(harness.Spec(std::string(12, 'a'), 1));
  harness.RunAll();
  for (const RequestRecord& record : Records(&harness)) {
    if (record.id != again || record.kind != RecordKind::kCached) continue;
    EXPECT_EQ(record.tokens, 11u);
  }
  EXPECT_EQ(KindsOf(&harness, again)[2], RecordKind::kCached);
}

TEST(StepLogTest, APreemptionTellsWhatWasLostAndWhatTheCacheKept) {
  HarnessOptions options;
  options.scheduler.num_blocks = {12};
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 48;
  EngineHarness harness(options);
  for (int i = 0; i < 3; ++i) {
    harness.Submit(harness.Spec(std::string(8, static_cast<char>('a' + i)), 30));
  }
  harness.RunAll();
  uint64_t preempted = 0;
  uint64_t resumed = 0;
  for (const RequestRecord& record : Records(&harness)) {
    if (record.kind == RecordKind::kResumed) ++resumed;
    if (record.kind != RecordKind::kPreempted) continue;
    ++preempted;
    EXPECT_GT(record.tokens, 0u);
    EXPECT_EQ(record.detail, static_cast<int64_t>(record.tokens)) << "its partial block too";
  }
  EXPECT_GT(preempted, 0u);
  EXPECT_EQ(resumed, preempted);
  const Histogram retained =
      harness.engine().Metrics().step.histograms.Of(HistogramId::kRetainedTokens);
  EXPECT_EQ(retained.count, preempted + 3) << "and one for each end";
}

TEST(StepLogTest, AFailedStepIsMarkedAndItsTokensDoNotCount) {
  EngineHarness harness;
  harness.runner().before = [](int step, const StepPlan&) {
    return step == 0 ? absl::UnavailableError("injected") : absl::OkStatus();
  };
  harness.Submit(harness.Spec("abc", 1));
  harness.RunAll();
  const std::vector<StepRecord> steps = Steps(&harness);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].failed, 1u);
  EXPECT_EQ(steps[1].failed, 0u);
  EXPECT_EQ(Records(&harness)[1].kind, RecordKind::kStepFailed);
  EXPECT_EQ(Records(&harness)[1].detail, static_cast<int64_t>(absl::StatusCode::kUnavailable));
}

TEST(StepLogTest, ARefusalIsRecordedWithItsStatus) {
  EngineHarness harness;
  uint64_t id = 0;
  EXPECT_FALSE(harness.engine().Submit(harness.Spec("abc", 1000), &id).ok());
  EXPECT_TRUE(harness.engine().Shutdown(-1).ok());
  EXPECT_FALSE(harness.engine().Submit(harness.Spec("abc", 1), &id).ok());
  const std::vector<RequestRecord> records = Records(&harness);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].detail, static_cast<int64_t>(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(records[1].detail, static_cast<int64_t>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(harness.engine().Metrics().rejected.other, 1u) << "also after the shutdown";
}

TEST(StepLogTest, BytesAreCountedByArithmetic) {
  HarnessOptions options;
  options.bytes.layer_weight_bytes = 1000;
  options.bytes.head_bytes = 100;
  options.bytes.embedding_row_bytes = 1;
  options.bytes.groups = {{0, 10}, {8, 3}};
  options.scheduler.groups.push_back(KvGroupSpec{8, {1}});
  options.scheduler.num_blocks.push_back(64);
  EngineHarness harness(options);
  harness.Submit(harness.Spec(std::string(20, 'a'), 2));
  harness.RunAll();
  const std::vector<StepRecord> steps = Steps(&harness);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].weight_bytes_read, 1000u + 16) << "no logits yet: the head is not read";
  EXPECT_EQ(steps[0].kv_bytes_written, 16u * 13);
  EXPECT_EQ(steps[0].kv_bytes_read, 16u * 13) << "the window sees all that there is";
  EXPECT_EQ(steps[1].weight_bytes_read, 1000u + 100 + 4);
  EXPECT_EQ(steps[1].kv_bytes_read, 20u * 10 + 11 * 3) << "4 queries see 8 + 3 keys in the window";
  EXPECT_EQ(steps[2].kv_bytes_read, 21u * 10 + 8 * 3);
}

TEST(StepBytesTest, CountsTheExpertsThatTokensReachWhenTheyChooseEvenly) {
  ByteModel model;
  model.layer_weight_bytes = 1000;
  model.expert_bytes = 100;
  model.num_experts = 8;
  model.experts_per_token = 2;
  StepPlan plan;
  plan.num_tokens = 1;
  EXPECT_EQ(PredictBytes(model, plan).weights_read, 1200u);
  plan.num_tokens = 2;  // 8 * (1 - 0.75^2) = 3.5 of them
  EXPECT_EQ(PredictBytes(model, plan).weights_read, 1350u);
  plan.num_tokens = 1000;
  EXPECT_EQ(PredictBytes(model, plan).weights_read, 1800u);
}

}  // namespace
}  // namespace llm
