// What a flush of the prefix cache drops, and when.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

const std::string kPrompt(100, 'p');

int32_t CachedTokens(EngineHarness* harness) {
  const uint64_t id = harness->Submit(harness->Spec(kPrompt, 2));
  harness->RunAll();
  return harness->Of(id).stats.cached_tokens;
}

TEST(FlushTest, ARequestSubmittedAfterItFindsNothingCached) {
  EngineHarness harness;
  CachedTokens(&harness);
  EXPECT_GT(CachedTokens(&harness), 0);
  EXPECT_TRUE(harness.engine().FlushCache().ok());
  EXPECT_EQ(CachedTokens(&harness), 0);
}

TEST(FlushTest, IsWorkThatAnIdleEngineDoesOnce) {
  EngineHarness harness;
  CachedTokens(&harness);
  EXPECT_GT(harness.engine().Metrics().scheduler.cached_blocks_current, 0);
  EXPECT_TRUE(harness.engine().FlushCache().ok());
  EXPECT_TRUE(harness.Step());
  EXPECT_EQ(harness.engine().Metrics().scheduler.cached_blocks_current, 0);
  EXPECT_FALSE(harness.Step());
}

TEST(FlushTest, ARunningRequestKeepsItsBlocksAndItsAnswer) {
  EngineHarness harness;
  const RequestSpec spec = harness.Spec(kPrompt, 20);
  const uint64_t id = harness.Submit(spec);
  for (int i = 0; i < 6; ++i) harness.Step();
  EXPECT_TRUE(harness.engine().FlushCache().ok());
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).ids, RunAlone(HarnessOptions(), spec).ids);
}

TEST(FlushTest, IsRefusedAfterShutdown) {
  EngineHarness harness;
  EXPECT_TRUE(harness.engine().Shutdown(0).ok());
  EXPECT_EQ(harness.engine().FlushCache().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace llm
