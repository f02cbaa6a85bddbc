// Scores: the numbers that generation would have had, whatever else runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> Text(int32_t size, int32_t seed = 1) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < size; ++i) ids.push_back((i * 7 + i * i * seed) % 60);
  return ids;
}

ScoreSpec SpecOf(const std::vector<int32_t>& ids, int64_t first = 1) {
  ScoreSpec spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.ids = ids;
  spec.first = first;
  return spec;
}

std::vector<float> Alone(const ScoreSpec& spec) {
  HarnessOptions options;
  options.engine.max_step_tokens = 256;
  options.scheduler.max_logit_rows = 256;
  EngineHarness harness(options);
  const absl::StatusOr<std::vector<float>> scored = harness.engine().Score(spec);
  EXPECT_TRUE(scored.ok()) << scored.status();
  return scored.value_or(std::vector<float>());
}

TEST(ScoreTest, EqualsTheLogProbabilitiesOfGeneration) {
  EngineHarness harness;
  const std::vector<int32_t> prompt = Text(30);
  RequestSpec spec = harness.Spec("", 20);
  spec.prompt_kind = PromptKind::kIds;
  spec.prompt_ids = prompt;
  spec.sampling.num_logprobs = 0;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  std::vector<int32_t> text = prompt;
  const Received& answer = harness.Of(id);
  text.insert(text.end(), answer.ids.begin(), answer.ids.end());
  const auto scored = harness.engine().Score(SpecOf(text, 30));
  ASSERT_TRUE(scored.ok()) << scored.status();
  ASSERT_EQ(scored->size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ((*scored)[i], answer.logprobs[i].logprob) << i;
}

TEST(ScoreTest, IsBitIdenticalAmongOtherRequestsAndPreemptions) {
  HarnessOptions options;
  options.engine.max_step_tokens = 7;
  options.scheduler.num_blocks = {30};
  options.scheduler.max_logit_rows = 9;
  options.scheduler.policy = SchedulingPolicy::kPriority;
  EngineHarness harness(options);
  const std::vector<int32_t> text = Text(100);
  const std::vector<float> alone = Alone(SpecOf(text));
  ASSERT_EQ(alone.size(), 99u);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 6; ++i) {
    RequestSpec other = harness.Spec(std::string(static_cast<size_t>(10 + i), 'a'), 30);
    ids.push_back(harness.Submit(other));
  }
  ScoreSpec spec = SpecOf(text);
  spec.priority = 1;  // all others go first, and take its blocks
  const auto scored = harness.engine().Score(spec);
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(*scored, alone);
  EXPECT_GT(harness.engine().Metrics().scheduler.preemptions_total, 0u);
  harness.RunAll();
  harness.Poll();
  for (const uint64_t id : ids) EXPECT_EQ(harness.Of(id).ids.size(), 30u);
}

TEST(ScoreTest, NeitherReadsNorFeedsThePrefixCache) {
  EngineHarness harness;
  const std::vector<int32_t> text = Text(60);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(harness.engine().Score(SpecOf(text)).ok());
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(metrics.scheduler.cached_tokens_total, 0u);
  EXPECT_EQ(metrics.step.computed_tokens_total, 2u * 59u);
  EXPECT_EQ(metrics.step.finished_requests_total, 2u);
}

TEST(ScoreTest, AWholeContextCanBeScored) {
  EngineHarness harness;  // 256 tokens
  EXPECT_EQ(harness.engine().Score(SpecOf(Text(256)))->size(), 255u);
  EXPECT_EQ(harness.engine().Score(SpecOf(Text(257))).status().code(),
            absl::StatusCode::kInvalidArgument);
}

struct Rows {
  std::vector<int64_t> positions;
  std::vector<float> logprobs;
  int32_t result = 0;
  bool throws = false;
  Engine* engine = nullptr;  // set: scores again, inside the step
  absl::Status nested;

  ScoreHandler Handler() { return {&Rows::Call, nullptr, this}; }
  static int32_t Call(void*, void* user_data, const ScoreRow& row) {
    Rows& rows = *static_cast<Rows*>(user_data);
    EXPECT_EQ(row.logits.size(), static_cast<size_t>(kFakeVocab));
    rows.positions.push_back(row.position);
    rows.logprobs.push_back(row.logprob);
    if (rows.throws) throw std::runtime_error("row");
    if (rows.engine != nullptr) rows.nested = rows.engine->Score(SpecOf(Text(5))).status();
    return rows.result;
  }
};

TEST(ScoreTest, TheHandlerSeesEachRowOnceInOrder) {
  HarnessOptions options;
  options.scheduler.num_blocks = {20};
  EngineHarness harness(options);
  for (int i = 0; i < 4; ++i) harness.Submit(harness.Spec("abcdefgh", 30));
  Rows rows;
  ScoreSpec spec;
  const std::vector<int32_t> text = Text(50);
  spec = SpecOf(text, 10);
  spec.handler = rows.Handler();
  const auto scored = harness.engine().Score(spec);
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(rows.logprobs, *scored);
  ASSERT_EQ(rows.positions.size(), 40u);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(rows.positions[i], static_cast<int64_t>(10 + i));
}

TEST(ScoreTest, TheHandlerEndsIt) {
  EngineHarness harness;
  const std::vector<int32_t> text = Text(50);
  ScoreSpec spec = SpecOf(text);
  Rows rows;
  rows.result = 1;
  spec.handler = rows.Handler();
  EXPECT_EQ(harness.engine().Score(spec).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(rows.positions.size(), 1u);
  rows.throws = true;
  EXPECT_EQ(harness.engine().Score(spec).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(harness.engine().Metrics().scheduler.held_blocks_current, 0);
  EXPECT_TRUE(harness.engine().Score(SpecOf(text)).ok()) << "the engine is healthy";
}

TEST(ScoreTest, AScoreInsideAStepIsRefused) {
  EngineHarness harness;
  const std::vector<int32_t> text = Text(20);
  ScoreSpec spec = SpecOf(text);
  Rows rows;
  rows.engine = &harness.engine();
  spec.handler = rows.Handler();
  EXPECT_TRUE(harness.engine().Score(spec).ok());
  EXPECT_EQ(rows.nested.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ScoreTest, WhatIsWrongIsNamed) {
  EngineHarness harness;
  const auto refused = [&](const std::vector<int32_t>& ids, int64_t first, const char* names) {
    const absl::Status status = harness.engine().Score(SpecOf(ids, first)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(names));
  };
  refused({1}, 1, "at least 2");
  refused({1, 2}, 2, "first");
  refused({1, 2}, 0, "first");
  refused({1, 999}, 1, "999");
  refused({}, 1, "empty");
}

TEST(ScoreTest, ARowThatIsNotFiniteEndsItsScoreAlone) {
  EngineHarness harness;
  const uint64_t other = harness.Submit(harness.Spec("abc", 10));
  harness.runner().nan_request = other + 1;
  const std::vector<int32_t> text = Text(40);
  const absl::Status status = harness.engine().Score(SpecOf(text)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not finite"));
  harness.RunAll();
  harness.Poll();
  EXPECT_EQ(harness.Of(other).ids.size(), 10u);
}

TEST(ScoreTest, ManyThreadsScoreAtOnce) {
  HarnessOptions options;
  options.engine.manual = false;
  EngineHarness harness(options);
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<int32_t> text = Text(60, t + 1);
      Rows rows;
      ScoreSpec spec = SpecOf(text);
      spec.handler = rows.Handler();
      rows.engine = &harness.engine();
      const auto scored = harness.engine().Score(spec);
      ASSERT_TRUE(scored.ok()) << scored.status();
      EXPECT_EQ(*scored, rows.logprobs);
      EXPECT_EQ(rows.nested.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(*scored, Alone(SpecOf(text)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ScoreTest, ShutdownCancelsIt) {
  HarnessOptions options;
  options.engine.manual = false;
  EngineHarness harness(options);
  std::atomic<bool> started{false};
  harness.runner().before = [&](int, const StepPlan&) {
    started = true;
    return absl::OkStatus();
  };
  const std::vector<int32_t> text = Text(200);
  std::thread shutdown([&] {
    while (!started) std::this_thread::yield();
    EXPECT_TRUE(harness.engine().Shutdown(-1).ok());
  });
  const absl::Status status = harness.engine().Score(SpecOf(text)).status();
  shutdown.join();
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kCancelled) << status;
}

}  // namespace
}  // namespace llm
