// Hints about sessions: what they keep in the prefix cache, and that they change no answer.
#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

constexpr uint64_t kAlice = 1;
constexpr uint64_t kBob = 2;

HarnessOptions SmallCache() {
  HarnessOptions options;
  options.scheduler.block_size = 4;
  options.scheduler.num_blocks = {24};
  options.scheduler.max_context_tokens = 96;
  options.engine.max_context_tokens = 96;
  return options;
}

// Runs one request of 36 prompt tokens, ten blocks, and returns how many of them were cached.
int32_t Turn(EngineHarness* harness, char prompt, uint64_t session_id) {
  const std::string text(36, prompt);
  RequestSpec spec = harness->Spec(text, 2);
  spec.session_id = session_id;
  const uint64_t id = harness->Submit(spec);
  harness->RunAll();
  return harness->Of(id).stats.cached_tokens;
}

TEST(SessionTest, WithoutHintsTheOlderSessionIsEvicted) {
  EngineHarness harness(SmallCache());
  Turn(&harness, 'a', kAlice);
  Turn(&harness, 'b', kBob);
  Turn(&harness, 'c', 0);
  EXPECT_GT(Turn(&harness, 'b', kBob), 30);
}

TEST(SessionTest, AClosedSessionIsEvictedBeforeAnOlderOne) {
  EngineHarness harness(SmallCache());
  Turn(&harness, 'a', kAlice);
  Turn(&harness, 'b', kBob);
  EXPECT_TRUE(harness.engine().HintSession(kBob, SessionHint::kClosed).ok());
  Turn(&harness, 'c', 0);
  EXPECT_GT(Turn(&harness, 'a', kAlice), 30);
}

TEST(SessionTest, OneThatWaitsForAToolOutlivesANewerOne) {
  EngineHarness harness(SmallCache());
  Turn(&harness, 'a', kAlice);
  EXPECT_TRUE(harness.engine().HintSession(kAlice, SessionHint::kToolCall).ok());
  Turn(&harness, 'b', kBob);
  Turn(&harness, 'c', 0);
  EXPECT_GT(Turn(&harness, 'a', kAlice), 30);
}

TEST(SessionTest, BlocksThatAnotherSessionUsesOutliveTheClose) {
  EngineHarness harness(SmallCache());
  Turn(&harness, 'a', 0);
  Turn(&harness, 'b', kBob);
  Turn(&harness, 'b', kAlice);
  EXPECT_TRUE(harness.engine().HintSession(kBob, SessionHint::kClosed).ok());
  EXPECT_TRUE(harness.engine().HintSession(kAlice, SessionHint::kClosed).ok());
  Turn(&harness, 'c', 0);
  EXPECT_GT(Turn(&harness, 'b', 3), 30);
}

TEST(SessionTest, AHintIsWorkThatAnIdleEngineDoesOnce) {
  EngineHarness harness(SmallCache());
  EXPECT_TRUE(harness.engine().HintSession(kBob, SessionHint::kHuman).ok());
  EXPECT_TRUE(harness.Step());
  EXPECT_FALSE(harness.Step());
}

TEST(SessionTest, RefusesWhatItCannotUse) {
  EngineHarness harness(SmallCache());
  Engine& engine = harness.engine();
  EXPECT_EQ(engine.HintSession(0, SessionHint::kHuman).code(), absl::StatusCode::kInvalidArgument);
  for (size_t i = 0; i < SessionHints::kMaxPending; ++i) {
    EXPECT_TRUE(engine.HintSession(1 + i, SessionHint::kClosed).ok());
  }
  EXPECT_EQ(engine.HintSession(kBob, SessionHint::kHuman).code(),
            absl::StatusCode::kResourceExhausted);
  harness.RunAll();
  EXPECT_TRUE(engine.HintSession(kBob, SessionHint::kHuman).ok());
  EXPECT_TRUE(engine.Shutdown(0).ok());
  EXPECT_EQ(engine.HintSession(kBob, SessionHint::kHuman).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(SessionTest, HintsFromOtherThreadsLeaveTheAnswersAlone) {
  HarnessOptions options = SmallCache();
  EngineHarness harness(options);
  std::thread hinter([&harness] {
    for (uint64_t i = 0; i < 2000; ++i) {
      (void)harness.engine().HintSession(1 + i % 3, static_cast<SessionHint>(1 + i % 3));
    }
  });
  for (int i = 0; i < 20; ++i) {
    const std::string text(20, static_cast<char>('a' + i % 4));
    RequestSpec spec = harness.Spec(text, 8);
    spec.session_id = 1 + static_cast<uint64_t>(i % 3);
    const uint64_t id = harness.Submit(spec);
    harness.RunAll();
    EXPECT_EQ(harness.Of(id).ids, RunAlone(options, spec).ids);
  }
  hinter.join();
}

}  // namespace
}  // namespace llm
