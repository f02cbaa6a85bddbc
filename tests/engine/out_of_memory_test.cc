// Rule 1 under memory pressure: whichever allocation of a step fails, every request still ends
// exactly once.
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"
#include "tests/engine/failing_new.h"

namespace llm {
namespace {

// True when the run ended before the failure came.
bool RunWithFailure(int allocation, int length) {
  EngineHarness harness;
  std::vector<uint64_t> ids;
  for (const char* prompt : {"abcdefgh", "abcdefxy", "zzz"}) {
    RequestSpec spec = harness.Spec(prompt, 9);
    spec.stop_strings = {"qqq"};
    spec.sampling.num_logprobs = 1;
    spec.num_prompt_logprobs = 1;
    ids.push_back(harness.Submit(spec));
  }
  FailAllocations(allocation, length);
  for (int i = 0; i < 200; ++i) {
    // Not harness.Step(): its checks allocate.
    const absl::StatusOr<bool> worked = harness.engine().Step();
    if (!worked.ok() || !*worked) break;
  }
  const bool survived = StopFailing();
  harness.Poll();
  for (const uint64_t id : ids) {
    EXPECT_EQ(harness.Of(id).num_finished, 1) << "allocation " << allocation;
    EXPECT_FALSE(harness.Of(id).token_after_finish);
    EXPECT_EQ(harness.Of(id).logprobs.size(), 2 * harness.Of(id).ids.size())
        << "half an event, allocation " << allocation;
    EXPECT_EQ(harness.Of(id).prompt_logprobs.size(), 2 * harness.Of(id).prompt_ids.size())
        << "half a prompt, allocation " << allocation;
    EXPECT_FALSE(harness.Of(id).prompt_after_token);
  }
  return survived;
}

TEST(OutOfMemoryTest, WhicheverAllocationOfAStepFailsEveryRequestEndsOnce) {
  int allocation = 0;
  while (!RunWithFailure(allocation, 1) && !testing::Test::HasFailure()) ++allocation;
  EXPECT_GT(allocation, 50);
}

TEST(OutOfMemoryTest, AndAlsoWhenMemoryStaysAway) {
  int allocation = 0;
  while (!RunWithFailure(allocation, 1000) && !testing::Test::HasFailure()) ++allocation;
  EXPECT_GT(allocation, 50);
}

}  // namespace
}  // namespace llm
