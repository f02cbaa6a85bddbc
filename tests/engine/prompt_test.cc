// Log-probabilities of the prompt: the numbers of a score, told once and before the first token,
// whatever else runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<int32_t> Text(int32_t size, int32_t seed = 1) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < size; ++i) ids.push_back((i * 7 + i * i * seed) % 60);
  return ids;
}

RequestSpec SpecOf(const std::vector<int32_t>& prompt, int32_t num_prompt_logprobs,
                   int32_t max_new_tokens = 5) {
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.prompt_ids = prompt;
  spec.max_new_tokens = max_new_tokens;
  spec.ignore_eos = true;
  spec.num_prompt_logprobs = num_prompt_logprobs;
  return spec;
}

std::vector<float> ScoreAlone(const std::vector<int32_t>& text) {
  EngineHarness harness;
  ScoreSpec spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.ids = text;
  const auto scored = harness.engine().Score(spec);
  EXPECT_TRUE(scored.ok()) << scored.status();
  return scored.value_or(std::vector<float>());
}

void ExpectTold(const Received& received, const std::vector<int32_t>& prompt, size_t top) {
  EXPECT_THAT(received.prompt_ids, ElementsAreArray(prompt.begin() + 1, prompt.end()));
  const std::vector<float> scores = ScoreAlone(prompt);
  ASSERT_EQ(received.prompt_logprobs.size(), scores.size() * (1 + top));
  for (size_t i = 0; i < scores.size(); ++i) {
    const TokenLogprob* entry = &received.prompt_logprobs[i * (1 + top)];
    EXPECT_EQ(entry[0].id, prompt[i + 1]);
    EXPECT_EQ(entry[0].logprob, scores[i]) << "token " << i + 1;
    for (size_t k = 2; k <= top; ++k) EXPECT_LE(entry[k].logprob, entry[k - 1].logprob);
    EXPECT_TRUE(top == 0 || entry[1].logprob >= entry[0].logprob);
  }
}

TEST(PromptTest, EqualsTheScoreOfThePromptAndLeavesTheAnswerAlone) {
  for (const int32_t budget : {1, 7, 16, 256}) {
    for (const int32_t rows : {1, 9, 256}) {
      HarnessOptions options;
      options.engine.max_step_tokens = budget;
      options.scheduler.max_logit_rows = rows;
      EngineHarness harness(options);
      const std::vector<int32_t> prompt = Text(50);
      const uint64_t id = harness.Submit(SpecOf(prompt, 3));
      harness.RunAll();
      ExpectTold(harness.Of(id), prompt, 3);
      EXPECT_EQ(harness.Of(id).ids, RunAlone(options, SpecOf(prompt, -1)).ids);
    }
  }
}

TEST(PromptTest, IsToldOnceAmongOthersThroughPreemptions) {
  HarnessOptions options;
  options.engine.max_step_tokens = 7;
  options.scheduler.num_blocks = {30};
  options.scheduler.max_logit_rows = 9;
  EngineHarness harness(options);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<uint64_t> ids;
  for (int32_t i = 0; i < 6; ++i) prompts.push_back(Text(20 + 9 * i, i % 2));
  for (const auto& prompt : prompts) ids.push_back(harness.Submit(SpecOf(prompt, 0, 30)));
  harness.RunAll();
  EXPECT_GT(harness.engine().Metrics().scheduler.preemptions_total, 0u);
  for (size_t i = 0; i < prompts.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectTold(harness.Of(ids[i]), prompts[i], 0);
    EXPECT_EQ(harness.Of(ids[i]).ids, RunAlone(options, SpecOf(prompts[i], -1, 30)).ids);
  }
}

TEST(PromptTest, FeedsThePrefixCacheWithoutReadingIt) {
  EngineHarness harness;
  const std::vector<int32_t> prompt = Text(60);
  const uint64_t first = harness.Submit(SpecOf(prompt, 0));
  harness.RunAll();
  const uint64_t second = harness.Submit(SpecOf(prompt, 0));
  harness.RunAll();
  const uint64_t plain = harness.Submit(SpecOf(prompt, -1));
  harness.RunAll();
  ExpectTold(harness.Of(second), prompt, 0);
  EXPECT_EQ(harness.Of(first).stats.cached_tokens, 0);
  EXPECT_EQ(harness.Of(second).stats.cached_tokens, 0);
  EXPECT_GT(harness.Of(plain).stats.cached_tokens, 50);
  EXPECT_EQ(harness.Of(plain).ids, harness.Of(second).ids);
}

TEST(PromptTest, EventsCoalesceUntilTheyAreTaken) {
  HarnessOptions options;
  options.engine.max_step_tokens = 8;
  EngineHarness harness(options);
  const std::vector<int32_t> prompt = Text(40);
  const uint64_t polled = harness.Submit(SpecOf(prompt, 1));
  harness.RunAll();  // polls after each step
  EXPECT_GE(harness.Of(polled).num_prompt_events, 5);
  const uint64_t late = harness.Submit(SpecOf(prompt, 1));
  while (harness.Step()) continue;
  harness.Poll();
  EXPECT_EQ(harness.Of(late).num_events, 3);  // prompt, tokens, finished
  ExpectTold(harness.Of(late), prompt, 1);
  const uint64_t single = harness.Submit(SpecOf(prompt, 1));
  while (harness.Step()) continue;
  harness.Poll(1);
  EXPECT_EQ(harness.Of(single).num_events, 3);
}

TEST(PromptTest, ASlowReaderPausesItWithoutLosingARow) {
  HarnessOptions options;
  options.engine.max_step_tokens = 8;
  options.engine.max_pending_bytes = 300;
  EngineHarness harness(options);
  const std::vector<int32_t> prompt = Text(100);
  const uint64_t id = harness.Submit(SpecOf(prompt, 2, 30));
  int rounds = 0;
  while (harness.Of(id).num_finished == 0 && ++rounds < 1000) {
    while (harness.Step()) continue;
    if (harness.Of(id).num_finished == 0) harness.Poll();
  }
  EXPECT_GT(rounds, 5);
  ExpectTold(harness.Of(id), prompt, 2);
  EXPECT_EQ(harness.Of(id).ids, RunAlone(options, SpecOf(prompt, -1, 30)).ids);
}

// The reader takes PROMPT alone, which wakes nothing yet: what is left may still be too much.
TEST(PromptTest, ThePausedRequestWakesWhenAllIsTaken) {
  HarnessOptions options;
  options.engine.manual = false;
  options.engine.max_pending_bytes = 64;
  EngineHarness harness(options);
  const std::vector<int32_t> prompt = Text(60);
  RequestSpec spec = SpecOf(prompt, 2, 40);
  spec.sampling.num_logprobs = 5;
  const uint64_t id = harness.Submit(spec);
  while (harness.Of(id).num_finished == 0) {
    const auto count = harness.engine().queue()->Poll(
        1, -1, [&](size_t, const Event& event) { harness.Of(event.id).Add(event); });
    ASSERT_TRUE(count.ok()) << count.status();
  }
  ExpectTold(harness.Of(id), prompt, 2);
  EXPECT_EQ(harness.Of(id).ids.size(), 40u);
}

TEST(PromptTest, APromptOfOneTokenHasNothingToTell) {
  EngineHarness harness;
  const std::vector<int32_t> prompt = Text(1);
  const uint64_t id = harness.Submit(SpecOf(prompt, 4));
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).num_prompt_events, 0);
  EXPECT_EQ(harness.Of(id).ids.size(), 5u);
}

TEST(PromptTest, TheFirstTokenMayEndTheRequestInTheSameStep) {
  EngineHarness harness;
  const std::vector<int32_t> prompt = Text(10);
  const uint64_t id = harness.Submit(SpecOf(prompt, 0, 1));
  while (harness.Step()) continue;
  harness.Poll();
  ExpectTold(harness.Of(id), prompt, 0);
  EXPECT_EQ(harness.Of(id).ids.size(), 1u);
}

TEST(PromptTest, AFailedStepTellsNothingTwice) {
  HarnessOptions options;
  options.engine.max_step_tokens = 8;
  EngineHarness harness(options);
  harness.runner().before = [](int step, const StepPlan&) {
    return step % 3 == 1 ? absl::InternalError("scripted") : absl::OkStatus();
  };
  const std::vector<int32_t> prompt = Text(50);
  const uint64_t id = harness.Submit(SpecOf(prompt, 1));
  harness.RunAll();
  ExpectTold(harness.Of(id), prompt, 1);
}

TEST(PromptTest, ARowThatIsNotFiniteEndsItsRequestAlone) {
  HarnessOptions options;
  options.engine.max_step_tokens = 8;
  EngineHarness harness(options);
  const std::vector<int32_t> prompt = Text(30);
  const uint64_t other = harness.Submit(SpecOf(prompt, 0));
  harness.runner().nan_request = other + 1;
  const uint64_t bad = harness.Submit(SpecOf(prompt, 0));
  harness.RunAll();
  EXPECT_EQ(harness.Of(bad).reason, FinishReason::kError);
  EXPECT_TRUE(harness.Of(bad).prompt_ids.empty());
  ExpectTold(harness.Of(other), prompt, 0);
}

TEST(PromptTest, CountsOutsideTheRangeAreNamed) {
  EngineHarness harness;
  const std::vector<int32_t> prompt = Text(5);
  for (const int32_t count : {-2, 21}) {
    uint64_t id = 0;
    const absl::Status status = harness.engine().Submit(SpecOf(prompt, count), &id);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("num_prompt_logprobs"));
  }
}

}  // namespace
}  // namespace llm
