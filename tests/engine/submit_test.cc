// Contract of submit: what is refused, what is promised, and the bounds of the queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(EngineHarness* harness, const RequestSpec& spec, absl::StatusCode code,
                   const std::string& names) {
  uint64_t id = 77;
  const absl::Status status = harness->engine().Submit(spec, &id);
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(names));
  EXPECT_EQ(id, 77u) << "outputs are untouched on failure";
}

TEST(SubmitTest, GivesAnIdAndExactlyOneFinished) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(harness.Spec("hello", 5));
  EXPECT_NE(id, 0u);
  harness.RunAll();
  const Received& received = harness.Of(id);
  EXPECT_EQ(received.num_finished, 1);
  EXPECT_EQ(received.reason, FinishReason::kLength);
  EXPECT_EQ(received.status, absl::StatusCode::kOk);
  EXPECT_EQ(received.ids.size(), 5u);
  EXPECT_EQ(received.stats.prompt_tokens, 5);
  EXPECT_EQ(received.stats.generated_tokens, 5);
}

TEST(SubmitTest, ThePromptsLengthDecidesOnceByWhichFrequenciesARequestTurns) {
  HarnessOptions options;
  options.engine.long_rope_above = 6;
  EngineHarness harness(options);
  std::map<uint64_t, std::set<bool>> seen;
  harness.runner().before = [&](int, const StepPlan& plan) {
    for (const ScheduledChunk& chunk : plan.chunks) {
      seen[chunk.sequence->request.id].insert(chunk.sequence->request.long_rope);
    }
    return absl::OkStatus();
  };
  const uint64_t at_most = harness.Submit(harness.Spec("abcdef", 5));
  const uint64_t above = harness.Submit(harness.Spec("abcdefg", 5));
  harness.RunAll();
  EXPECT_EQ(seen[at_most], std::set<bool>{false});
  EXPECT_EQ(seen[above], std::set<bool>{true});
}

TEST(SubmitTest, NamesTheFieldThatIsWrong) {
  EngineHarness harness;
  const auto invalid = [&](auto change, const char* names) {
    RequestSpec spec = harness.Spec("abc", 3);
    change(spec);
    ExpectRefused(&harness, spec, absl::StatusCode::kInvalidArgument, names);
  };
  invalid([](RequestSpec& s) { s.text = ""; }, "text");
  invalid([](RequestSpec& s) { s.prompt_kind = PromptKind::kNone; }, "prompt");
  invalid([](RequestSpec& s) { s.sampling.temperature = -1; }, "temperature");
  invalid([](RequestSpec& s) { s.sampling.temperature = std::nanf(""); }, "temperature");
  invalid([](RequestSpec& s) { s.sampling.top_p = 1.5f; }, "top_p");
  invalid([](RequestSpec& s) { s.sampling.top_p = std::nanf(""); }, "top_p");
  invalid([](RequestSpec& s) { s.sampling.min_p = -0.1f; }, "min_p");
  invalid([](RequestSpec& s) { s.sampling.top_k = -1; }, "top_k");
  invalid([](RequestSpec& s) { s.sampling.num_logprobs = 21; }, "num_logprobs");
  invalid([](RequestSpec& s) { s.stop_strings = {"x", ""}; }, "stop_strings");
  invalid([](RequestSpec& s) { s.stop_ids = {64}; }, "stop_ids");
  invalid([](RequestSpec& s) { s.first_token_timeout_ns = -1; }, "first_token_deadline_ns");
  const int32_t outside[] = {1, -3};
  invalid(
      [&](RequestSpec& s) {
        s.prompt_kind = PromptKind::kIds;
        s.prompt_ids = outside;
      },
      "prompt_ids");
  EXPECT_EQ(harness.engine().Metrics().rejected_requests_total, 13u);
}

TEST(SubmitTest, RefusesARequestThatCanNeverFit) {
  EngineHarness harness;
  ExpectRefused(&harness, harness.Spec("abc", 1000), absl::StatusCode::kInvalidArgument, "256");
}

TEST(SubmitTest, RefusesAPromptThatFillsTheContext) {
  EngineHarness harness;
  const std::string prompt(256, 'a');
  ExpectRefused(&harness, harness.Spec(prompt, 0), absl::StatusCode::kInvalidArgument, "256");
}

TEST(SubmitTest, FillsTheContextWhenNoLengthIsGiven) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(harness.Spec(std::string(250, 'a'), 0));
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).ids.size(), 6u);
}

TEST(SubmitTest, RefusesMoreRequestsThanTheBoundAndTakesThemAgainAfterAFinish) {
  HarnessOptions options;
  options.engine.bounds.max_requests = 2;
  EngineHarness harness(options);
  harness.Submit(harness.Spec("a", 1));
  harness.Submit(harness.Spec("b", 1));
  ExpectRefused(&harness, harness.Spec("c", 1), absl::StatusCode::kResourceExhausted,
                "max_queued_requests");
  harness.RunAll();
  harness.Submit(harness.Spec("c", 1));
}

TEST(SubmitTest, BoundsPromptTokensAndGivesThemBack) {
  HarnessOptions options;
  options.engine.bounds.max_tokens = 20;
  EngineHarness harness(options);
  harness.Submit(harness.Spec("0123456701234567", 1));
  ExpectRefused(&harness, harness.Spec("abcdefgh", 1), absl::StatusCode::kResourceExhausted,
                "max_queued_tokens");
  harness.RunAll();
  harness.Submit(harness.Spec("abcdefgh", 1));
}

TEST(SubmitTest, ARefusedRequestLeavesNoPlaceTaken) {
  HarnessOptions options;
  options.engine.bounds.max_requests = 1;
  EngineHarness harness(options);
  ExpectRefused(&harness, harness.Spec("abc", 1000), absl::StatusCode::kInvalidArgument, "");
  harness.Submit(harness.Spec("abc", 1));
}

TEST(SubmitTest, DrawsASeedAndTellsIt) {
  EngineHarness harness;
  RequestSpec spec = harness.Spec("abc", 12);
  spec.sampling.temperature = 1.0f;
  const uint64_t first = harness.Submit(spec);
  const uint64_t second = harness.Submit(spec);
  harness.RunAll();
  EXPECT_NE(harness.Of(first).stats.seed, harness.Of(second).stats.seed);
  spec.has_seed = true;
  spec.sampling.seed = harness.Of(first).stats.seed;
  const uint64_t again = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(again).ids, harness.Of(first).ids);
}

TEST(SubmitTest, GivesLogProbabilitiesOfTheChosenAndTheMostLikely) {
  EngineHarness harness;
  RequestSpec spec = harness.Spec("abc", 4);
  spec.sampling.num_logprobs = 2;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  const Received& received = harness.Of(id);
  ASSERT_EQ(received.logprobs.size(), 4u * 3);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(received.logprobs[3 * i].id, received.ids[i]);
    EXPECT_EQ(received.logprobs[3 * i + 1].id, received.ids[i]) << "greedy takes the most likely";
    EXPECT_GE(received.logprobs[3 * i + 1].logprob, received.logprobs[3 * i + 2].logprob);
  }
}

TEST(SubmitTest, ChatWithoutATemplateIsAFailedPrecondition) {
  EngineHarness harness;
  RequestSpec spec = harness.Spec("[]", 4);
  spec.prompt_kind = PromptKind::kChat;
  ExpectRefused(&harness, spec, absl::StatusCode::kFailedPrecondition, "chat");
}

}  // namespace
}  // namespace llm
