// Prefixes that leave an engine and come into another: what is found then, and that answers stay.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

const std::string kPrefix(34, 'p');  // eight whole blocks of 4, and two tokens more

RequestSpec PrefixSpec(const std::string& text) {
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kText;
  spec.text = text;
  return spec;
}

// A copy whose bytes are the caller's: what crosses to another engine.
std::shared_ptr<KvImage> Carry(const KvImage& image, Allocator* allocator) {
  auto copy = KvImage::Create(allocator, image.shape(), image.tokens(), image.variant());
  EXPECT_TRUE(copy.ok()) << copy.status();
  for (int32_t i = 0; i < image.num_blocks(); ++i) {
    for (size_t g = 0; g < image.shape().groups.size(); ++g) {
      const std::byte* from = image.block(i, static_cast<int>(g));
      if (from == nullptr) continue;
      std::memcpy((*copy)->block(i, static_cast<int>(g)), from,
                  image.shape().groups[g].block_bytes);
    }
  }
  return *copy;
}

std::shared_ptr<KvImage> ComputedElsewhere(const HarnessOptions& options, const std::string& text,
                                           Allocator* allocator) {
  EngineHarness source(options);
  const auto image = source.engine().ReadPrefix(PrefixSpec(text));
  EXPECT_TRUE(image.ok()) << image.status();
  source.CheckInvariants();
  return Carry(**image, allocator);
}

int32_t CachedTokens(EngineHarness* harness, const RequestSpec& spec, Received* answer) {
  const uint64_t id = harness->Submit(spec);
  harness->RunAll();
  *answer = harness->Of(id);
  return answer->stats.cached_tokens;
}

class PrefixTransferTest : public testing::TestWithParam<int> {
 protected:
  // With a parameter above 0, a window group beside the full one.
  static HarnessOptions Options() {
    HarnessOptions options;
    if (GetParam() > 0) {
      options.scheduler.groups.push_back(KvGroupSpec{GetParam(), {1}});
      options.scheduler.num_blocks.push_back(128);
    }
    return options;
  }
  Allocator allocator_;
};
INSTANTIATE_TEST_SUITE_P(Windows, PrefixTransferTest, testing::Values(0, 6, 9));

TEST_P(PrefixTransferTest, WhatIsRestoredIsFoundAndGivesTheAnswerOfRecomputation) {
  EngineHarness harness(Options());
  const auto image = ComputedElsewhere(Options(), kPrefix, &allocator_);
  const auto restored = harness.engine().RestorePrefix(image, "", /*pin=*/false);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored, 0u);
  harness.CheckInvariants();
  const std::string text = kPrefix + "and what comes after it";
  const RequestSpec spec = harness.Spec(text, 12);
  Received answer;
  EXPECT_EQ(CachedTokens(&harness, spec, &answer), 32);
  EXPECT_EQ(answer.ids, RunAlone(Options(), spec).ids);
}

TEST_P(PrefixTransferTest, BlocksThatAreThereAlreadyAreShared) {
  EngineHarness harness(Options());
  Received answer;
  const std::string half = kPrefix.substr(0, 18);
  CachedTokens(&harness, harness.Spec(half, 2), &answer);
  const auto image = ComputedElsewhere(Options(), kPrefix, &allocator_);
  ASSERT_TRUE(harness.engine().RestorePrefix(image, "", false).ok());
  ASSERT_TRUE(harness.engine().RestorePrefix(image, "", false).ok());
  harness.CheckInvariants();
  EXPECT_EQ(CachedTokens(&harness, harness.Spec(kPrefix + "more", 2), &answer), 32);
}

TEST_P(PrefixTransferTest, APinHoldsThemThroughAFlush) {
  HarnessOptions options = Options();
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 64;
  EngineHarness harness(options);
  const auto image = ComputedElsewhere(Options(), kPrefix, &allocator_);
  const auto pin = harness.engine().RestorePrefix(image, "", /*pin=*/true);
  ASSERT_TRUE(pin.ok()) << pin.status();
  EXPECT_TRUE(harness.engine().FlushCache().ok());
  harness.RunAll();
  Received answer;
  EXPECT_EQ(CachedTokens(&harness, harness.Spec(kPrefix + "more", 2), &answer), 32);
  EXPECT_TRUE(harness.engine().UnpinPrefix(*pin).ok());
  harness.RunAll();
  harness.CheckInvariants();
  EXPECT_EQ(harness.engine().Metrics().scheduler.pinned_blocks_current, 0);
}

TEST_P(PrefixTransferTest, IsForRequestsOfItsSaltAlone) {
  EngineHarness harness(Options());
  const auto image = ComputedElsewhere(Options(), kPrefix, &allocator_);
  ASSERT_TRUE(harness.engine().RestorePrefix(image, "tenant", false).ok());
  Received answer;
  const std::string more = kPrefix + "more", other = kPrefix + "else";
  RequestSpec spec = harness.Spec(more, 2);
  EXPECT_EQ(CachedTokens(&harness, spec, &answer), 0);
  spec.cache_salt = "tenant";
  spec.text = other;
  EXPECT_EQ(CachedTokens(&harness, spec, &answer), 32);
}

TEST_P(PrefixTransferTest, RefusesWhatRunningRequestsLeaveNoRoomForAndDisturbsNobody) {
  HarnessOptions options = Options();
  for (int& blocks : options.scheduler.num_blocks) blocks = 20;
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 64;
  EngineHarness harness(options);
  const auto image = ComputedElsewhere(options, kPrefix, &allocator_);
  const std::string other(54, 'q');
  const RequestSpec running = harness.Spec(other, 8);
  const uint64_t id = harness.Submit(running);
  for (int step = 0; step < 5; ++step) harness.Step();
  const absl::Status refused = harness.engine().RestorePrefix(image, "", false).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("need 8 blocks of kv group 0"), absl::string_view::npos)
      << refused;
  harness.CheckInvariants();
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).ids, RunAlone(options, running).ids);
}

TEST_P(PrefixTransferTest, AnotherRequestsAnswerIsTheSameWhileAPrefixIsRead) {
  EngineHarness harness(Options());
  const RequestSpec spec = harness.Spec("another request", 20);
  const uint64_t id = harness.Submit(spec);
  ASSERT_TRUE(harness.engine().ReadPrefix(PrefixSpec(kPrefix)).ok());
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).ids, RunAlone(Options(), spec).ids);
}

TEST(PrefixTransferErrorsTest, TellsWhatCannotBe) {
  EngineHarness harness;
  EXPECT_EQ(harness.engine().ReadPrefix(PrefixSpec("abc")).status().code(),
            absl::StatusCode::kInvalidArgument);
  Allocator allocator;
  const auto image = ComputedElsewhere(HarnessOptions(), kPrefix, &allocator);
  HarnessOptions uncached;
  uncached.scheduler.prefix_cache = false;
  EngineHarness cold(uncached);
  EXPECT_EQ(cold.engine().RestorePrefix(image, "", false).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(harness.engine().Shutdown(0).ok());
  EXPECT_EQ(harness.engine().RestorePrefix(image, "", false).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace llm
