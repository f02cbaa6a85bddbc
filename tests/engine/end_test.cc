// How requests end: end and stop tokens, stop strings, cancel, deadlines.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

TEST(EndTest, StopsAtTheEndTokenAndShowsNoTextForIt) {
  EngineHarness harness;
  harness.runner().script = harness.tokenizer().Ids("hi");
  RequestSpec spec = harness.Spec("abc", 10);
  spec.ignore_eos = false;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kEndToken);
  EXPECT_EQ(harness.Of(id).stop_index, kFakeEnd);
  EXPECT_EQ(harness.Of(id).text, "hi");
  EXPECT_EQ(harness.Of(id).ids.size(), 3u);
}

TEST(EndTest, StopsAtAStopToken) {
  EngineHarness harness;
  harness.runner().script = harness.tokenizer().Ids("hiya");
  RequestSpec spec = harness.Spec("abc", 10);
  spec.stop_ids = harness.tokenizer().Ids("y");
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kStopToken);
  EXPECT_EQ(harness.Of(id).stop_index, spec.stop_ids[0]);
}

TEST(EndTest, WithholdsTextThatCouldBeginAStopString) {
  EngineHarness harness;
  harness.runner().script = harness.tokenizer().Ids("one two stop three");
  RequestSpec spec = harness.Spec("abc", 18);
  spec.stop_strings = {"zzz", " stop"};
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kStopString);
  EXPECT_EQ(harness.Of(id).stop_index, 1);
  EXPECT_EQ(harness.Of(id).text, "one two");
}

TEST(EndTest, TextNeverSplitsACharacter) {
  EngineHarness harness;
  harness.runner().script = {kFakeAccentLead, kFakeAccentTail, kFakeAccentLead};
  const uint64_t id = harness.Submit(harness.Spec("abc", 3));
  harness.Step();
  harness.Poll();
  EXPECT_EQ(harness.Of(id).text, "");
  EXPECT_EQ(harness.Of(id).ids.size(), 1u);
  harness.Step();
  harness.Poll();
  EXPECT_EQ(harness.Of(id).text, "\xc3\xa9");
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).text, "\xc3\xa9\xef\xbf\xbd");
}

TEST(EndTest, CancelTakesEffectWithinOneStepDuringALongPrefill) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(harness.Spec(std::string(200, 'a'), 5));
  harness.Step();
  EXPECT_TRUE(harness.engine().Cancel(id).ok());
  harness.Step();
  harness.Poll();
  EXPECT_EQ(harness.Of(id).num_finished, 1);
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kCancelled);
  EXPECT_EQ(harness.Of(id).status, absl::StatusCode::kCancelled);
  EXPECT_EQ(harness.Of(id).stats.ttft_ns, -1);
  EXPECT_EQ(harness.engine().Metrics().scheduler.held_blocks_current, 0);
}

TEST(EndTest, CancelOfAQueuedRequestFinishesItUnscheduled) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(harness.Spec("abc", 5));
  EXPECT_TRUE(harness.engine().Cancel(id).ok());
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kCancelled);
  EXPECT_EQ(harness.Of(id).stats.queue_ns, harness.Of(id).stats.total_ns);
  EXPECT_EQ(harness.runner().steps(), 0);
}

TEST(EndTest, ALateOrUnknownCancelIsHarmless) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(harness.Spec("abc", 1));
  harness.RunAll();
  EXPECT_EQ(harness.engine().Cancel(id).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(harness.engine().Cancel(999).code(), absl::StatusCode::kNotFound);
}

TEST(EndTest, WhatACancelledRequestDeliveredIsAPrefixOfItsAnswer) {
  HarnessOptions options;
  EngineHarness harness(options);
  RequestSpec spec = harness.Spec("prefix", 30);
  const Received alone = RunAlone(options, spec);
  const uint64_t id = harness.Submit(spec);
  for (int i = 0; i < 7; ++i) harness.Step();
  EXPECT_TRUE(harness.engine().Cancel(id).ok());
  harness.RunAll();
  const Received& received = harness.Of(id);
  EXPECT_EQ(received.ids, std::vector<int32_t>(alone.ids.begin(), alone.ids.begin() + 7));
  EXPECT_EQ(received.text, alone.text.substr(0, received.text.size()));
}

TEST(EndTest, CancelShowsNothingThatAStopStringMightCutOff) {
  EngineHarness harness;
  harness.runner().script = harness.tokenizer().Ids("ab stop");
  RequestSpec spec = harness.Spec("abc", 18);
  spec.stop_strings = {" stop"};
  const uint64_t id = harness.Submit(spec);
  for (int i = 0; i < 5; ++i) harness.Step();
  EXPECT_TRUE(harness.engine().Cancel(id).ok());
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).text, "ab");
}

TEST(EndTest, AFirstTokenDeadlineEndsAQueuedRequest) {
  HarnessOptions options;
  options.scheduler.max_sequences = 1;
  EngineHarness harness(options);
  const uint64_t running = harness.Submit(harness.Spec("abc", 10));
  RequestSpec spec = harness.Spec("def", 10);
  spec.first_token_timeout_ns = 3000;
  const uint64_t waiting = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(running).reason, FinishReason::kLength);
  EXPECT_EQ(harness.Of(waiting).reason, FinishReason::kDeadline);
  EXPECT_EQ(harness.Of(waiting).status, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(harness.Of(waiting).stats.generated_tokens, 0);
}

TEST(EndTest, AFirstTokenDeadlineIsOverOnceATokenCame) {
  EngineHarness harness;
  RequestSpec spec = harness.Spec("abc", 10);
  spec.first_token_timeout_ns = 1500;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kLength);
}

TEST(EndTest, ACompletionDeadlineEndsARunningRequestWithWhatItHas) {
  EngineHarness harness;
  RequestSpec spec = harness.Spec("abc", 100);
  spec.completion_timeout_ns = 4000;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kDeadline);
  EXPECT_EQ(harness.Of(id).ids.size(), 4u);
}

TEST(EndTest, StatsMeasureOnTheEnginesClock) {
  HarnessOptions options;
  options.scheduler.max_sequences = 1;
  EngineHarness harness(options);
  harness.Submit(harness.Spec("abc", 2));
  const uint64_t id = harness.Submit(harness.Spec("abc", 3));
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).stats.queue_ns, 2000);
  EXPECT_EQ(harness.Of(id).stats.ttft_ns, 3000);
  EXPECT_EQ(harness.Of(id).stats.total_ns, 5000);
}

}  // namespace
}  // namespace llm
