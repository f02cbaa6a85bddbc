// Embeddings: the mean or the last of the hidden states, the same bits whatever else runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
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

EmbedSpec SpecOf(const std::vector<int32_t>& ids, Pooling pooling = Pooling::kMean,
                 bool normalize = false) {
  EmbedSpec spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.ids = ids;
  spec.pooling = pooling;
  spec.normalize = normalize;
  return spec;
}

std::vector<float> Embed(EngineHarness* harness, const EmbedSpec& spec) {
  const absl::StatusOr<std::vector<float>> values = harness->engine().Embed(spec);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.value_or(std::vector<float>());
}

std::vector<float> Alone(const EmbedSpec& spec) {
  HarnessOptions options;
  options.engine.max_step_tokens = 256;
  options.scheduler.max_logit_rows = 256;
  EngineHarness harness(options);
  return Embed(&harness, spec);
}

// The last state of each prefix is the state of its last token.
TEST(EmbedTest, TheMeanIsTheMeanOfTheLastStatesOfAllPrefixes) {
  const std::vector<int32_t> text = Text(40);
  EngineHarness harness;
  std::vector<double> sums(kFakeHidden, 0.0);
  for (size_t size = 1; size <= text.size(); ++size) {
    const std::vector<int32_t> prefix(text.begin(), text.begin() + static_cast<ptrdiff_t>(size));
    const std::vector<float> last = Embed(&harness, SpecOf(prefix, Pooling::kLast));
    ASSERT_EQ(last.size(), sums.size());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(last[i]);
  }
  const std::vector<float> mean = Embed(&harness, SpecOf(text));
  ASSERT_EQ(mean.size(), sums.size());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(mean[i], static_cast<float>(sums[i] / 40));
}

TEST(EmbedTest, IsBitIdenticalAmongOtherRequestsAndPreemptions) {
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    HarnessOptions options;
    options.engine.max_step_tokens = 7;
    options.scheduler.num_blocks = {30};
    options.scheduler.max_logit_rows = 9;
    options.scheduler.policy = SchedulingPolicy::kPriority;
    EngineHarness harness(options);
    const std::vector<int32_t> text = Text(100);
    std::vector<uint64_t> ids;
    for (int i = 0; i < 6; ++i) {
      RequestSpec other = harness.Spec(std::string(static_cast<size_t>(10 + i), 'a'), 30);
      other.num_prompt_logprobs = i % 2 - 1;
      ids.push_back(harness.Submit(other));
    }
    EmbedSpec spec = SpecOf(text, pooling);
    spec.priority = 1;  // all others go first, and take its blocks
    EXPECT_EQ(Embed(&harness, spec), Alone(spec));
    EXPECT_GT(harness.engine().Metrics().scheduler.preemptions_total, 0u);
    harness.RunAll();
    harness.Poll();
    for (const uint64_t id : ids) EXPECT_EQ(harness.Of(id).ids.size(), 30u);
  }
}

TEST(EmbedTest, NormalizedItHasLengthOne) {
  EngineHarness harness;
  const std::vector<int32_t> text = Text(20);
  const std::vector<float> raw = Embed(&harness, SpecOf(text));
  const std::vector<float> unit = Embed(&harness, SpecOf(text, Pooling::kMean, true));
  double squares = 0;
  double length = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    squares += static_cast<double>(unit[i]) * static_cast<double>(unit[i]);
    length += static_cast<double>(raw[i]) * static_cast<double>(raw[i]);
  }
  EXPECT_NEAR(squares, 1, 1e-6);
  for (size_t i = 0; i < raw.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(unit[i]), static_cast<double>(raw[i]) / std::sqrt(length),
                1e-6);
  }
}

TEST(EmbedTest, AMeanOfLengthZeroStaysZero) {
  EmbedSink sink(Pooling::kMean, true, 2);
  const std::vector<float> zero(2, 0.0f);
  sink.Add(zero);
  sink.Finish();
  EXPECT_EQ(sink.TakeValues(), zero);
}

TEST(EmbedTest, NeitherReadsNorFeedsThePrefixCache) {
  EngineHarness harness;
  const std::vector<int32_t> text = Text(60);
  for (int i = 0; i < 2; ++i) Embed(&harness, SpecOf(text));
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(metrics.scheduler.cached_tokens_total, 0u);
  EXPECT_EQ(metrics.step.computed_tokens_total, 2u * 60u);
  EXPECT_EQ(metrics.step.finished_requests_total, 2u);
  EXPECT_EQ(metrics.step.generated_tokens_total, 0u);
  EXPECT_EQ(metrics.scheduler.held_blocks_current, 0);
}

TEST(EmbedTest, AWholeContextCanBeEmbedded) {
  EngineHarness harness;  // 256 tokens
  EXPECT_EQ(Embed(&harness, SpecOf(Text(256))).size(), size_t{kFakeHidden});
  EXPECT_EQ(Embed(&harness, SpecOf(Text(1))).size(), size_t{kFakeHidden});
  EXPECT_EQ(harness.engine().Embed(SpecOf(Text(257))).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(EmbedTest, AFailedStepPoolsNothingTwice) {
  HarnessOptions options;
  options.engine.max_step_tokens = 8;
  EngineHarness harness(options);
  harness.runner().before = [](int step, const StepPlan&) {
    return step % 3 == 1 ? absl::InternalError("scripted") : absl::OkStatus();
  };
  const std::vector<int32_t> text = Text(50);
  EXPECT_EQ(Embed(&harness, SpecOf(text)), Alone(SpecOf(text)));
}

TEST(EmbedTest, AStateThatIsNotFiniteEndsItsEmbeddingAlone) {
  EngineHarness harness;
  const uint64_t other = harness.Submit(harness.Spec("abc", 10));
  harness.runner().nan_request = other + 1;
  const std::vector<int32_t> text = Text(40);
  const absl::Status status = harness.engine().Embed(SpecOf(text)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not finite"));
  harness.RunAll();
  harness.Poll();
  EXPECT_EQ(harness.Of(other).ids.size(), 10u);
}

TEST(EmbedTest, ManyThreadsEmbedAtOnce) {
  HarnessOptions options;
  options.engine.manual = false;
  EngineHarness harness(options);
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<int32_t> text = Text(60, t + 1);
      EXPECT_EQ(Embed(&harness, SpecOf(text)), Alone(SpecOf(text)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(EmbedTest, ShutdownCancelsIt) {
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
  const absl::Status status = harness.engine().Embed(SpecOf(text)).status();
  shutdown.join();
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(harness.engine().Embed(SpecOf(text)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace llm
