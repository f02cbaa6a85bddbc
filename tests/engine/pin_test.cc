// Pinned prefixes: what they hold, until when, and that requests always fit beside them.
#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

const std::string kPrefix(34, 'p');  // two whole blocks of 16, and two tokens more

// A context of 4 blocks in a pool of 8: 4 can be pinned.
HarnessOptions Options() {
  HarnessOptions options;
  options.scheduler.block_size = 16;
  options.scheduler.num_blocks = {8};
  options.scheduler.max_context_tokens = 64;
  options.engine.max_context_tokens = 64;
  return options;
}

absl::StatusOr<uint64_t> Pin(EngineHarness* harness, absl::string_view text,
                             const std::string& salt = "") {
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kText;
  spec.text = text;
  spec.cache_salt = salt;
  absl::StatusOr<uint64_t> pin = harness->engine().PinPrefix(spec);
  harness->CheckInvariants();
  return pin;
}

int32_t CachedTokens(EngineHarness* harness, const std::string& text) {
  const uint64_t id = harness->Submit(harness->Spec(text, 2));
  harness->RunAll();
  return harness->Of(id).stats.cached_tokens;
}

void FillTheCache(EngineHarness* harness) {
  for (char c = 'a'; c < 'i'; ++c) CachedTokens(harness, std::string(60, c));
}

int32_t Pinned(EngineHarness* harness) {
  return harness->engine().Metrics().scheduler.pinned_blocks_current;
}

TEST(PinTest, HoldsWholeBlocksAgainstEvictionAndFlush) {
  EngineHarness harness(Options());
  ASSERT_TRUE(Pin(&harness, kPrefix).ok());
  EXPECT_EQ(Pinned(&harness), 2);
  EXPECT_EQ(harness.engine().Metrics().scheduler.held_blocks_current, 2);
  FillTheCache(&harness);
  EXPECT_GE(CachedTokens(&harness, kPrefix + "and more"), 32);
  EXPECT_TRUE(harness.engine().FlushCache().ok());
  harness.RunAll();
  EXPECT_EQ(CachedTokens(&harness, kPrefix + "and more"), 32);
}

TEST(PinTest, GivesTheBlocksBackWithTheNextStep) {
  EngineHarness harness(Options());
  const auto pin = Pin(&harness, kPrefix);
  ASSERT_TRUE(pin.ok()) << pin.status();
  EXPECT_TRUE(harness.engine().UnpinPrefix(*pin).ok());
  EXPECT_TRUE(harness.Step());
  EXPECT_FALSE(harness.Step());
  EXPECT_EQ(Pinned(&harness), 0);
  EXPECT_EQ(harness.engine().Metrics().scheduler.held_blocks_current, 0);
  EXPECT_EQ(harness.engine().UnpinPrefix(*pin).code(), absl::StatusCode::kNotFound);
  FillTheCache(&harness);
  EXPECT_EQ(CachedTokens(&harness, kPrefix + "and more"), 0);
}

TEST(PinTest, CountsSharedBlocksOnceAndKeepsThemForTheOtherPin) {
  EngineHarness harness(Options());
  const auto first = Pin(&harness, kPrefix);
  const auto second = Pin(&harness, kPrefix + std::string(14, 'q'));
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(Pinned(&harness), 3);
  EXPECT_TRUE(harness.engine().UnpinPrefix(*first).ok());
  harness.RunAll();
  EXPECT_EQ(Pinned(&harness), 3);
  EXPECT_TRUE(harness.engine().UnpinPrefix(*second).ok());
  harness.RunAll();
  EXPECT_EQ(Pinned(&harness), 0);
}

TEST(PinTest, LeavesRoomForARequestOfTheWholeContext) {
  EngineHarness harness(Options());
  ASSERT_TRUE(Pin(&harness, std::string(48, 'p')).ok());
  const absl::Status refused = Pin(&harness, std::string(32, 'q')).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "prefix: 5 blocks of kv group 0 would be pinned, 3 of them by others; the bound is 4");
  ASSERT_TRUE(Pin(&harness, std::string(16, 'q')).ok());
  EXPECT_EQ(Pinned(&harness), 4);
  for (char c : {'p', 'q', 'r'}) {
    const uint64_t id = harness.Submit(harness.Spec(std::string(40, c), 24));
    harness.Submit(harness.Spec(std::string(30, c), 30));
    harness.RunAll();
    EXPECT_EQ(harness.Of(id).ids.size(), 24u);
  }
}

TEST(PinTest, RefusesWhatItCannotHold) {
  EngineHarness harness(Options());
  EXPECT_EQ(Pin(&harness, "short").status().code(), absl::StatusCode::kInvalidArgument);
  HarnessOptions tight = Options();
  tight.scheduler.num_blocks = {4};
  EngineHarness full(tight);
  EXPECT_EQ(Pin(&full, kPrefix).status().code(), absl::StatusCode::kResourceExhausted);
  HarnessOptions uncached = Options();
  uncached.scheduler.prefix_cache = false;
  EngineHarness cold(uncached);
  EXPECT_EQ(Pin(&cold, kPrefix).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PinTest, IsForRequestsOfItsSaltAlone) {
  EngineHarness harness(Options());
  ASSERT_TRUE(Pin(&harness, kPrefix, "tenant").ok());
  EXPECT_EQ(CachedTokens(&harness, kPrefix + "and more"), 0);
}

TEST(PinTest, HoldsTheLastWindowOfAWindowGroup) {
  HarnessOptions options = Options();
  options.scheduler.groups.push_back(KvGroupSpec{16, {1}});
  options.scheduler.num_blocks.push_back(8);
  options.engine.max_step_tokens = 7;
  EngineHarness harness(options);
  ASSERT_TRUE(Pin(&harness, std::string(50, 'p')).ok());
  EXPECT_EQ(Pinned(&harness), 3 + 1);
  FillTheCache(&harness);
  EXPECT_EQ(CachedTokens(&harness, std::string(50, 'p') + "more"), 48);
}

TEST(PinTest, RunsBesideOtherRequestsAndLeavesTheirAnswersAlone) {
  EngineHarness harness(Options());
  const RequestSpec spec = harness.Spec("another request", 20);
  const uint64_t id = harness.Submit(spec);
  ASSERT_TRUE(Pin(&harness, kPrefix).ok());
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).ids, RunAlone(Options(), spec).ids);
}

TEST(PinTest, ARunnerThatFailsLeavesNothingPinned) {
  EngineHarness harness(Options());
  harness.Submit(harness.Spec("another request", 20));
  harness.Step();
  harness.runner().before = [](int, const StepPlan& plan) {
    return plan.chunks.size() > 1 ? absl::InternalError("injected") : absl::OkStatus();
  };
  EXPECT_FALSE(Pin(&harness, kPrefix).ok());
  harness.RunAll();
  EXPECT_EQ(Pinned(&harness), 0);
}

TEST(PinTest, KeysThatAreNotFiniteAreNotHeld) {
  EngineHarness harness(Options());
  harness.runner().nan_request = 1;
  EXPECT_EQ(Pin(&harness, kPrefix).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Pinned(&harness), 0);
}

TEST(PinTest, AnAbandonedPinIsNeverGranted) {
  PrefixPins pins;
  PinTicket early, late;
  pins.Abandon(1, &early);
  EXPECT_FALSE(pins.Grant(1, early));
  EXPECT_TRUE(pins.Grant(2, late));
  pins.Abandon(2, &late);
  EXPECT_EQ(pins.Unpin(2).code(), absl::StatusCode::kNotFound);
}

TEST(PinTest, RefusesMoreThanTheBoundUntilAStepHasSeenTheUnpins) {
  PrefixPins pins;
  const PinTicket ticket;
  for (uint64_t id = 1; id <= Scheduler::kMaxPins; ++id) EXPECT_TRUE(pins.Grant(id, ticket));
  EXPECT_FALSE(pins.Grant(5000, ticket));
  EXPECT_TRUE(pins.Unpin(1).ok());
  EXPECT_FALSE(pins.Grant(5000, ticket));
}

TEST(PinTest, WithThreadsTheCallWaitsAndAShutdownEndsIt) {
  HarnessOptions options = Options();
  options.engine.manual = false;
  EngineHarness harness(options);
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kText;
  spec.text = kPrefix;
  const auto pin = harness.engine().PinPrefix(spec);
  ASSERT_TRUE(pin.ok()) << pin.status();
  EXPECT_TRUE(harness.engine().UnpinPrefix(*pin).ok());
  std::thread pinner([&] {
    while (harness.engine().PinPrefix(spec).ok()) {
    }
  });
  EXPECT_TRUE(harness.engine().Shutdown(-1).ok());
  pinner.join();
  EXPECT_EQ(harness.engine().PinPrefix(spec).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace llm
