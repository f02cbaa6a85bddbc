// Rule 4, and rule 1's last sentence: failed steps, rows that are not finite, and the unhealthy
// engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

TEST(FailureTest, AFailedStepIsRetriedAndChangesNoAnswer) {
  HarnessOptions options;
  EngineHarness harness(options);
  harness.runner().before = [](int step, const StepPlan&) {
    return step % 3 == 1 ? absl::ResourceExhaustedError("no memory now") : absl::OkStatus();
  };
  const std::string long_prompt(40, 'a');
  const RequestSpec a = harness.Spec(long_prompt, 9);
  const RequestSpec b = harness.Spec("bcd", 9);
  const uint64_t id_a = harness.Submit(a);
  const uint64_t id_b = harness.Submit(b);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id_a).ids, RunAlone(options, a).ids);
  EXPECT_EQ(harness.Of(id_b).ids, RunAlone(options, b).ids);
  EXPECT_GT(harness.engine().Metrics().step.failed_steps_total, 0u);
}

TEST(FailureTest, RetriesWithHalfTheBudget) {
  EngineHarness harness;
  std::vector<int32_t> tokens;
  harness.runner().before = [&](int step, const StepPlan& plan) {
    tokens.push_back(plan.num_tokens);
    return step < 2 ? absl::InternalError("flaky") : absl::OkStatus();
  };
  harness.Submit(harness.Spec(std::string(100, 'a'), 1));
  for (int i = 0; i < 4; ++i) harness.Step();
  EXPECT_EQ(tokens, (std::vector<int32_t>{16, 8, 4, 16}));
}

TEST(FailureTest, ALostDeviceEndsAllAtOnce) {
  EngineHarness harness;
  const uint64_t first = harness.Submit(harness.Spec("abc", 6));
  const uint64_t second = harness.Submit(harness.Spec("def", 6));
  harness.runner().before = [&](int step, const StepPlan&) {
    if (step < 2) return absl::OkStatus();
    harness.runner().device_status = absl::InternalError("it fell off the bus");
    return absl::InternalError("step: it fell off the bus");
  };
  for (int i = 0; i < 3; ++i) harness.Step();
  harness.Poll();
  EXPECT_EQ(harness.runner().steps(), 3);
  for (const uint64_t id : {first, second}) {
    EXPECT_EQ(harness.Of(id).num_finished, 1);
    EXPECT_EQ(harness.Of(id).status, absl::StatusCode::kInternal);
    EXPECT_EQ(harness.Of(id).message, "the device is lost: it fell off the bus");
  }
  EXPECT_FALSE(harness.engine().Metrics().healthy);
}

TEST(FailureTest, AfterThreeFailuresTheNewestRequestEndsWithTheError) {
  HarnessOptions options;
  EngineHarness harness(options);
  const RequestSpec old_spec = harness.Spec("abc", 6);
  const uint64_t old_id = harness.Submit(old_spec);
  const uint64_t new_id = harness.Submit(harness.Spec("def", 6));
  harness.runner().before = [&](int, const StepPlan& plan) -> absl::Status {
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (chunk.sequence->request.id == new_id) return absl::ResourceExhaustedError("too much");
    }
    return absl::OkStatus();
  };
  harness.RunAll();
  EXPECT_EQ(harness.Of(new_id).reason, FinishReason::kError);
  EXPECT_EQ(harness.Of(new_id).status, absl::StatusCode::kInternal);
  EXPECT_EQ(harness.Of(new_id).message, "too much");
  EXPECT_EQ(harness.Of(old_id).ids, RunAlone(options, old_spec).ids);
  EXPECT_EQ(harness.engine().Metrics().step.failed_steps_total, 3u);
}

TEST(FailureTest, AFailureWithOneRequestLeftMakesTheEngineUnhealthy) {
  EngineHarness harness;
  harness.runner().before = [](int, const StepPlan&) { return absl::InternalError("device gone"); };
  const uint64_t first = harness.Submit(harness.Spec("abc", 6));
  const uint64_t second = harness.Submit(harness.Spec("def", 6));
  for (int i = 0; i < 6; ++i) harness.Step();
  harness.Poll();
  for (const uint64_t id : {first, second}) {
    EXPECT_EQ(harness.Of(id).num_finished, 1);
    EXPECT_EQ(harness.Of(id).status, absl::StatusCode::kInternal);
    EXPECT_THAT(harness.Of(id).message, HasSubstr("device gone"));
  }
  uint64_t id = 0;
  EXPECT_THAT(std::string(harness.engine().Submit(harness.Spec("x", 1), &id).message()),
              HasSubstr("device gone"));
  EXPECT_THAT(std::string(harness.engine().Step().status().message()), HasSubstr("device gone"));
  EXPECT_EQ(harness.engine().Cancel(first).code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(harness.engine().Metrics().healthy);
  EXPECT_TRUE(harness.engine().Shutdown(0).ok());
}

TEST(FailureTest, AnExceptionInAStepFailsItLikeAnyError) {
  HarnessOptions options;
  EngineHarness harness(options);
  harness.runner().before = [](int step, const StepPlan&) -> absl::Status {
    if (step == 1) throw std::bad_alloc();
    if (step == 3) throw 5;
    return absl::OkStatus();
  };
  const RequestSpec spec = harness.Spec("abc", 6);
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).ids, RunAlone(options, spec).ids);
  EXPECT_EQ(harness.engine().Metrics().step.failed_steps_total, 2u);
}

TEST(FailureTest, ARowThatIsNotFiniteFailsItsRequestAlone) {
  HarnessOptions options;
  EngineHarness harness(options);
  const RequestSpec spec = harness.Spec("abc", 6);
  const uint64_t good = harness.Submit(spec);
  const uint64_t bad = harness.Submit(harness.Spec("abcdefgh", 6));
  const uint64_t also_good = harness.Submit(spec);
  harness.runner().nan_request = bad;
  harness.RunAll();
  EXPECT_EQ(harness.Of(bad).reason, FinishReason::kError);
  EXPECT_EQ(harness.Of(bad).status, absl::StatusCode::kInternal);
  EXPECT_THAT(harness.Of(bad).message, HasSubstr("logits are not finite"));
  EXPECT_EQ(harness.Of(good).ids, RunAlone(options, spec).ids);
  EXPECT_EQ(harness.Of(also_good).ids, harness.Of(good).ids);
  EXPECT_TRUE(harness.engine().Metrics().healthy);
}

TEST(FailureTest, KeysOfANonFiniteRowAreNotPublished) {
  EngineHarness harness;
  const RequestSpec spec = harness.Spec("abcdefgh", 2);
  const uint64_t bad = harness.Submit(spec);
  harness.runner().nan_request = bad;
  harness.RunAll();
  const uint64_t next = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(next).stats.cached_tokens, 0);
  EXPECT_EQ(harness.Of(next).reason, FinishReason::kLength);
}

TEST(FailureTest, AnUnhealthyEngineFinishesQueuedRequestsToo) {
  HarnessOptions options;
  options.scheduler.max_sequences = 1;
  EngineHarness harness(options);
  harness.runner().before = [&](int, const StepPlan&) { return absl::InternalError("broken"); };
  std::vector<uint64_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(harness.Submit(harness.Spec("abc", 3)));
  for (int i = 0; i < 20 && harness.engine().Metrics().healthy; ++i) harness.Step();
  harness.Poll();
  for (const uint64_t id : ids) EXPECT_EQ(harness.Of(id).num_finished, 1);
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(metrics.step.finished_requests_total, 5u);
  EXPECT_EQ(metrics.step.failed_requests_total, 5u);
}

}  // namespace
}  // namespace llm
