// Bias, penalties and the least length through the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

Received AnswerTo(EngineHarness* harness, const RequestSpec& spec) {
  const uint64_t id = harness->Submit(spec);
  harness->RunAll();
  harness->Poll();
  return harness->Of(id);
}

TEST(AdjustTest, ABiasChoosesTheTokenAndLeavesItsLogProbability) {
  EngineHarness harness;
  RequestSpec spec = harness.Spec("abc", 5);
  spec.sampling.num_logprobs = 0;
  spec.sampling.logit_bias = {{7, 1000.0f}};
  const Received biased = AnswerTo(&harness, spec);
  EXPECT_EQ(biased.ids, std::vector<int32_t>(5, 7));
  for (const TokenLogprob& token : biased.logprobs) {
    EXPECT_LT(token.logprob, -0.1f) << "of the unmodified distribution";
  }
}

TEST(AdjustTest, APenaltyKeepsTokensFromComingBack) {
  EngineHarness harness;
  harness.runner().favour = 9;  // by 100
  RequestSpec spec = harness.Spec("abc", 30);
  EXPECT_EQ(AnswerTo(&harness, spec).ids, std::vector<int32_t>(30, 9));
  spec.sampling.repetition_penalty = 100.0f;
  spec.sampling.frequency_penalty = 2.0f;
  const Received varied = AnswerTo(&harness, spec);
  EXPECT_EQ(varied.ids[0], 9);
  EXPECT_GT(std::set<int32_t>(varied.ids.begin(), varied.ids.end()).size(), 5u);
}

TEST(AdjustTest, ABadWordIsNeverWritten) {
  EngineHarness harness;
  harness.runner().script = harness.tokenizer().Ids("abccabb");
  RequestSpec spec = harness.Spec("x", 7);
  EXPECT_EQ(AnswerTo(&harness, spec).text, "abccabb");
  spec.bad_words = {"abc"};
  const std::string text = AnswerTo(&harness, spec).text;
  EXPECT_EQ(text.substr(0, 2), "ab");
  EXPECT_EQ(text.find("abc"), std::string::npos);
}

TEST(AdjustTest, NothingEndsTheOutputBeforeItsLeastLength) {
  EngineHarness harness;
  harness.runner().favour = kFakeEnd;
  RequestSpec spec = harness.Spec("abc", 30);
  spec.ignore_eos = false;
  EXPECT_EQ(AnswerTo(&harness, spec).ids.size(), 1u);
  spec.sampling.min_new_tokens = 10;
  const Received longer = AnswerTo(&harness, spec);
  EXPECT_EQ(longer.ids.size(), 11u);
  EXPECT_EQ(longer.ids.back(), kFakeEnd);
  EXPECT_EQ(longer.reason, FinishReason::kEndToken);
}

TEST(AdjustTest, NoScheduleChangesTheAnswer) {
  HarnessOptions options;
  options.engine.max_step_tokens = 5;
  options.scheduler.num_blocks = {24};
  EngineHarness harness(options);
  std::vector<RequestSpec> specs;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 6; ++i) {
    RequestSpec spec = harness.Spec("the same prompt", 40);
    spec.has_seed = true;
    spec.sampling.seed = static_cast<uint64_t>(i);
    spec.sampling.temperature = i % 2 == 0 ? 1.0f : 0.0f;
    spec.sampling.repetition_penalty = 1.3f;
    spec.sampling.presence_penalty = 0.5f;
    spec.sampling.frequency_penalty = -0.25f;
    spec.sampling.logit_bias = {{i, 2.0f}};
    spec.sampling.min_new_tokens = 20;
    spec.ignore_eos = false;
    specs.push_back(spec);
    ids.push_back(harness.Submit(spec));
  }
  harness.RunAll();
  harness.Poll();
  EXPECT_GT(harness.engine().Metrics().scheduler.preemptions_total, 0u);
  for (size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(harness.Of(ids[i]).ids, RunAlone(HarnessOptions(), specs[i]).ids) << i;
  }
}

TEST(AdjustTest, WhatIsWrongIsNamed) {
  EngineHarness harness;
  const auto refused = [&](auto change, const char* names) {
    RequestSpec spec = harness.Spec("abc", 5);
    change(spec);
    uint64_t id = 0;
    const absl::Status status = harness.engine().Submit(spec, &id);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << names;
    EXPECT_THAT(std::string(status.message()), HasSubstr(names));
  };
  const float nan = std::nanf("");
  refused([&](RequestSpec& s) { s.sampling.repetition_penalty = nan; }, "repetition_penalty");
  refused([&](RequestSpec& s) { s.sampling.repetition_penalty = 0; }, "repetition_penalty");
  refused([&](RequestSpec& s) { s.sampling.presence_penalty = 3; }, "presence_penalty");
  refused([&](RequestSpec& s) { s.sampling.frequency_penalty = nan; }, "frequency_penalty");
  refused([&](RequestSpec& s) { s.sampling.logit_bias = {{1, nan}}; }, "logit_bias");
  refused([&](RequestSpec& s) { s.sampling.logit_bias = {{64, 1}}; }, "logit_bias");
  refused([](RequestSpec& s) { s.bad_words = {"a", ""}; }, "bad_words");
  refused([&](RequestSpec& s) { s.sampling.min_new_tokens = 6; }, "min_new_tokens");
}

}  // namespace
}  // namespace llm
