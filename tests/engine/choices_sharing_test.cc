// Choices share the keys and values of their prompt: it is computed once, and no answer changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/choices_harness.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

// The prompt of 10 tokens is computed once; each further choice computes its last token, for the
// logits.
void ExpectPromptComputedOnce(bool engine_cache, bool request_cache, int window) {
  SCOPED_TRACE(testing::Message() << engine_cache << request_cache << " window " << window);
  HarnessOptions options;
  options.scheduler.prefix_cache = engine_cache;
  if (window > 0) {
    options.scheduler.groups.push_back(KvGroupSpec{window, {1}});
    options.scheduler.num_blocks.push_back(128);
  }
  EngineHarness harness(options);
  RequestSpec spec = Choices(harness, "abcdefghij", 9, 5);
  spec.use_prefix_cache = request_cache;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(metrics.step.computed_tokens_total, 10u + 4u);
  EXPECT_EQ(metrics.step.prompt_tokens_total, 10u);
  EXPECT_EQ(metrics.scheduler.cached_tokens_total, 0u);
  EXPECT_EQ(metrics.scheduler.held_blocks_current, 0);
  EXPECT_EQ(harness.Of(id).stats.cached_tokens, 0);
  EXPECT_EQ(harness.Of(id, 0).stats.cached_tokens, 0);
  for (uint32_t i = 1; i < 5; ++i) EXPECT_EQ(harness.Of(id, i).stats.cached_tokens, 0);
  ExpectEachEqualsItsAloneRun(options, spec, id, &harness);
}

TEST(ChoicesSharingTest, ThePromptIsComputedOnceWithAndWithoutPrefixCache) {
  for (const int window : {0, 1, 3, 6}) {
    ExpectPromptComputedOnce(true, true, window);
    ExpectPromptComputedOnce(true, false, window);
    ExpectPromptComputedOnce(false, true, window);
  }
}

TEST(ChoicesSharingTest, AChunkedPromptIsComputedOnceWhileOthersAreAdmitted) {
  HarnessOptions options;
  EngineHarness harness(options);
  const std::string prompt(50, 'a');
  const RequestSpec spec = Choices(harness, prompt, 6, 3);
  const uint64_t id = harness.Submit(spec);
  const uint64_t other = harness.Submit(harness.Spec("xyz", 2));
  for (int i = 0; i < 4; ++i) harness.Step();
  harness.Step();
  harness.RunAll();
  EXPECT_EQ(harness.engine().Metrics().step.computed_tokens_total, 50u + 2u + 3u);
  EXPECT_EQ(harness.Of(other).num_finished, 1);
  ExpectEachEqualsItsAloneRun(options, spec, id, &harness);
}

TEST(ChoicesSharingTest, MoreChoicesThanSequencesQueueAndShareWithThoseThatRun) {
  HarnessOptions options;
  options.scheduler.prefix_cache = false;
  options.scheduler.max_sequences = 2;
  EngineHarness harness(options);
  RequestSpec spec = Choices(harness, "abcdefghij", 20, 6);
  spec.stop_ids = {harness.tokenizer().Ids("a")[0], harness.tokenizer().Ids("b")[0]};
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).num_finished, 1);
  ExpectEachEqualsItsAloneRun(options, spec, id, &harness);
}

TEST(ChoicesSharingTest, APartlyFilledBlockIsCopiedAndNeverWrittenByTwo) {
  HarnessOptions options;
  options.scheduler.block_size = 16;
  EngineHarness harness(options);
  std::vector<BlockCopy> copies;
  harness.runner().before = [&](int, const StepPlan& plan) {
    copies.insert(copies.end(), plan.block_copies.begin(), plan.block_copies.end());
    return absl::OkStatus();
  };
  const RequestSpec spec = Choices(harness, "abcdefghij", 9, 3);
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].tokens, 9);
  EXPECT_NE(copies[0].destination, copies[1].destination);
  ExpectEachEqualsItsAloneRun(options, spec, id, &harness);
}

TEST(ChoicesSharingTest, FailedStepsAndPreemptionsChangeNoChoice) {
  HarnessOptions options;
  options.scheduler.num_blocks = {14};
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 48;
  EngineHarness harness(options);
  harness.runner().before = [](int step, const StepPlan&) {
    return step % 3 == 1 ? absl::InternalError("injected") : absl::OkStatus();
  };
  RequestSpec spec = Choices(harness, "abcdefghij", 20, 4);
  const uint64_t id = harness.Submit(spec);
  spec.use_prefix_cache = false;
  const uint64_t uncached = harness.Submit(spec);
  harness.RunAll();
  EXPECT_GT(harness.engine().Metrics().scheduler.preemptions_total, 0u);
  ExpectEachEqualsItsAloneRun(options, spec, id, &harness);
  ExpectEachEqualsItsAloneRun(options, spec, uncached, &harness);
}

TEST(ChoicesSharingTest, WhenThePromptFailsTheOthersTryThemselves) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(Choices(harness, "abcdef", 3, 3));
  harness.runner().nan_request = id;
  harness.RunAll();
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(harness.Of(id, i).reason, FinishReason::kError);
    EXPECT_THAT(harness.Of(id, i).message, HasSubstr("not finite"));
  }
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kError);
  EXPECT_TRUE(harness.engine().Metrics().healthy);
}

}  // namespace
}  // namespace llm
