// Rule 1 under memory pressure: whichever allocation of a step fails, every request still ends
// exactly once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "src/engine/saved_prefix.h"
#include "tests/engine/engine_harness.h"
#include "tests/engine/failing_new.h"

namespace llm {
namespace {

constexpr size_t kNewTokens = 9;

// Half an event, or an answer that says it is whole and is not.
void ExpectHonest(const Received& received, int allocation) {
  EXPECT_EQ(received.num_finished, 1) << "allocation " << allocation;
  EXPECT_FALSE(received.token_after_finish);
  EXPECT_EQ(received.logprobs.size(), 2 * received.ids.size()) << "allocation " << allocation;
  EXPECT_EQ(received.prompt_logprobs.size(), 2 * received.prompt_ids.size())
      << "half a prompt, allocation " << allocation;
  EXPECT_FALSE(received.prompt_after_token);
  if (received.reason == FinishReason::kLength) {
    EXPECT_EQ(received.ids.size(), kNewTokens) << "allocation " << allocation;
    EXPECT_EQ(received.text.size(), kNewTokens) << "allocation " << allocation;
  } else {
    EXPECT_EQ(received.reason, FinishReason::kError);
  }
}

// True when the run ended before the failure came.
bool RunWithFailure(int allocation, int length) {
  EngineHarness harness;
  harness.runner().script = harness.tokenizer().Ids("abcabcabc");
  std::vector<uint64_t> ids;
  for (const char* prompt : {"abcdefgh", "abcdefxy", "zzz"}) {
    RequestSpec spec = harness.Spec(prompt, kNewTokens);
    spec.stop_strings = {"qqq"};
    spec.sampling.num_logprobs = 1;
    spec.num_prompt_logprobs = 1;
    ids.push_back(harness.Submit(spec));
  }
  RequestSpec several = harness.Spec("abcdefgh", kNewTokens);
  several.sampling.num_logprobs = 1;
  several.num_prompt_logprobs = 1;
  several.choices = 2;
  const uint64_t choices = harness.Submit(several);
  FailAllocations(allocation, length);
  for (int i = 0; i < 200; ++i) {
    // Not harness.Step(): its checks allocate.
    const absl::StatusOr<bool> worked = harness.engine().Step();
    if (!worked.ok() || !*worked) break;
  }
  const bool survived = StopFailing();
  harness.Poll();
  for (const uint64_t id : ids) {
    ExpectHonest(harness.Of(id), allocation);
  }
  EXPECT_EQ(harness.Of(choices).num_finished, 1) << "allocation " << allocation;
  for (uint32_t i = 0; i < 2; ++i) ExpectHonest(harness.Of(choices, i), allocation);
  return survived;
}

TEST(OutOfMemoryTest, WhicheverAllocationOfAStepFailsEveryRequestEndsOnce) {
  int allocation = 0;
  while (!RunWithFailure(allocation, 1) && !testing::Test::HasFailure()) ++allocation;
  EXPECT_GT(allocation, 50);
}

// A victim that lost its blocks must not run on as if it had them.
TEST(OutOfMemoryTest, APreemptionThatFailsLeavesNoAnswerWrong) {
  bool survived = false;
  for (int allocation = 0; !survived && !testing::Test::HasFailure(); ++allocation) {
    HarnessOptions options;
    options.scheduler.num_blocks = {7};
    options.scheduler.admission = AdmissionPolicy::kGreedy;
    EngineHarness harness(options);
    std::vector<uint64_t> ids;
    std::vector<Received> alone;
    for (const char* prompt : {"abcdefgh", "zyxwvuts", "mmmmnnnn"}) {
      alone.push_back(RunAlone(options, harness.Spec(prompt, kNewTokens)));
      ids.push_back(harness.Submit(harness.Spec(prompt, kNewTokens)));
    }
    FailAllocations(allocation, 1);
    while (true) {
      const absl::StatusOr<bool> worked = harness.engine().Step();
      if (!worked.ok() || !*worked) break;
    }
    survived = StopFailing();
    harness.CheckInvariants();
    harness.RunAll();
    harness.Poll();
    for (size_t i = 0; i < ids.size(); ++i) {
      const Received& received = harness.Of(ids[i]);
      EXPECT_EQ(received.num_finished, 1) << "allocation " << allocation;
      if (received.reason != FinishReason::kLength) continue;
      EXPECT_EQ(received.ids, alone[i].ids) << "allocation " << allocation;
    }
    if (survived) {
      EXPECT_GT(harness.engine().Metrics().scheduler.preemptions_total, 0u);
    }
  }
}

TEST(OutOfMemoryTest, ACancelBesideAnArrivalWithoutMemoryLosesNeither) {
  for (int allocation = 0; allocation < 40 && !testing::Test::HasFailure(); ++allocation) {
    EngineHarness harness;
    const uint64_t first = harness.Submit(harness.Spec("abc", 50));
    harness.Step();
    ASSERT_TRUE(harness.engine().Cancel(first).ok());
    const uint64_t second = harness.Submit(harness.Spec("abd", 3));
    FailAllocations(allocation, 1);
    (void)harness.engine().Step();
    StopFailing();
    harness.RunAll();
    harness.Poll();
    EXPECT_TRUE(harness.engine().Metrics().healthy) << "allocation " << allocation;
    EXPECT_EQ(harness.Of(first).num_finished, 1);
    EXPECT_EQ(harness.Of(second).num_finished, 1);
  }
}

TEST(OutOfMemoryTest, ACloseWithAnArrivalLeftOverEndsThoseBehindItToo) {
  for (int allocation = 0; allocation < 20 && !testing::Test::HasFailure(); ++allocation) {
    EngineHarness harness;
    const uint64_t left_over = harness.Submit(harness.Spec("abc", 3));
    FailAllocations(allocation, 1);
    (void)harness.engine().Step();
    StopFailing();
    const uint64_t behind = harness.Submit(harness.Spec("abd", 3));
    ASSERT_TRUE(harness.engine().Shutdown(0).ok());
    harness.Poll();
    EXPECT_EQ(harness.Of(left_over).num_finished, 1) << "allocation " << allocation;
    EXPECT_EQ(harness.Of(behind).num_finished, 1) << "allocation " << allocation;
  }
}

// The file is whole or not there, whichever allocation fails, of the engine's or of the writing.
TEST(OutOfMemoryTest, ASaveThatFailsLeavesNoHalfAFile) {
  const std::string prefix(30, 'p');
  const std::string path = testing::TempDir() + "inlay-oom-" + std::to_string(getpid());
  HarnessOptions options;
  options.engine.slice_bytes = 1;
  const RequestSpec spec = EngineHarness(options).Spec(prefix, 6);
  bool survived = false;
  int num_failed = 0;
  for (int allocation = 0; !survived && !testing::Test::HasFailure(); ++allocation) {
    ASSERT_LT(allocation, 1000);
    EngineHarness harness(options);
    absl::Status status = absl::UnknownError("bad_alloc");
    FailAllocations(allocation, 1);
    try {
      status = SavePrefix(&harness.engine(), spec, path);
    } catch (const std::bad_alloc&) {
      // The boundary of the C ABI makes a status of it.
    }
    survived = StopFailing();
    num_failed += status.ok() ? 0 : 1;
    harness.RunAll();
    harness.CheckInvariants();
    EXPECT_EQ(harness.engine().Metrics().scheduler.held_blocks_current, 0);
    const auto loaded = LoadPrefix(&harness.engine(), path, "", false);
    EXPECT_EQ(loaded.ok(), status.ok()) << loaded.status() << ", allocation " << allocation;
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound);
    }
    unlink(path.c_str());
  }
  EXPECT_GT(num_failed, 20);
}

// The right answer afterwards shows that no half-filled block is found.
TEST(OutOfMemoryTest, ARestoreThatFailsLeavesEngineAndAnswersAsTheyWere) {
  const std::string prefix(30, 'p');
  HarnessOptions options;
  options.engine.slice_bytes = 1;
  const RequestSpec spec = EngineHarness(options).Spec(prefix, 6);
  const std::vector<int32_t> answer = RunAlone(options, spec).ids;
  bool survived = false;
  for (int allocation = 0; !survived && !testing::Test::HasFailure(); ++allocation) {
    ASSERT_LT(allocation, 500);
    EngineHarness harness(options);
    const auto image = harness.engine().ReadPrefix(spec);
    ASSERT_TRUE(image.ok()) << image.status();
    ASSERT_TRUE(harness.engine().FlushCache().ok());
    harness.RunAll();
    FailAllocations(allocation, 1);
    try {
      (void)harness.engine().RestorePrefix(std::const_pointer_cast<KvImage>(*image), "", false);
    } catch (const std::bad_alloc&) {
      // The boundary of the C ABI makes a status of it.
    }
    survived = StopFailing();
    harness.CheckInvariants();
    const uint64_t id = harness.Submit(spec);
    harness.RunAll();
    EXPECT_EQ(harness.Of(id).ids, answer) << "allocation " << allocation;
  }
}

TEST(OutOfMemoryTest, AReturnFromTheSecondTierThatFailsChangesNoAnswer) {
  HarnessOptions options;
  options.scheduler.num_blocks = {20};
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 80;
  options.spill = {testing::TempDir(), 1 << 16};
  options.engine.slice_bytes = 1;
  const std::string first(50, 'p'), second(60, 'q');
  const std::vector<int32_t> answer = RunAlone(options, EngineHarness(options).Spec(first, 6)).ids;
  bool survived = false;
  for (int allocation = 0; !survived && !testing::Test::HasFailure(); ++allocation) {
    ASSERT_LT(allocation, 500);
    EngineHarness harness(options);
    for (const std::string* text : {&first, &second}) {
      harness.Submit(harness.Spec(*text, 4));
      harness.RunAll();
    }
    const uint64_t id = harness.Submit(harness.Spec(first, 6));
    FailAllocations(allocation, 1);
    for (int i = 0; i < 100; ++i) {
      const absl::StatusOr<bool> worked = harness.engine().Step();
      if (!worked.ok() || !*worked) break;
    }
    survived = StopFailing();
    harness.Poll();
    harness.CheckInvariants();
    EXPECT_EQ(harness.Of(id).num_finished, 1) << "allocation " << allocation;
    if (harness.Of(id).reason == FinishReason::kLength) {
      EXPECT_EQ(harness.Of(id).ids, answer) << "allocation " << allocation;
    }
  }
}

TEST(OutOfMemoryTest, AndAlsoWhenMemoryStaysAway) {
  int allocation = 0;
  while (!RunWithFailure(allocation, 1000) && !testing::Test::HasFailure()) ++allocation;
  EXPECT_GT(allocation, 50);
}

// Throws once when told to.
class ThrowingClock : public ManualClock {
 public:
  int64_t NowNs() const override {
    if (std::exchange(armed, false)) throw 1;
    return ManualClock::NowNs();
  }
  mutable bool armed = false;
};

// The step commits, and then the engine fails, for want of memory for the message of the score that
// its callback ends.
TEST(OutOfMemoryTest, AnAnswerThatEndedInTheStepThatFailsTheEngineIsDelivered) {
  const auto clock = std::make_shared<ThrowingClock>();
  HarnessOptions options;
  options.clock = clock;
  EngineHarness harness(options);
  harness.runner().script = harness.tokenizer().Ids("abc");
  const uint64_t ends = harness.Submit(harness.Spec("abc", 1));
  const uint64_t runs = harness.Submit(harness.Spec("abc", 50));
  ScoreHandler handler;
  handler.user_data = clock.get();
  handler.call = [](void*, void* user_data, const ScoreRow&) -> int32_t {
    static_cast<ThrowingClock*>(user_data)->armed = true;  // behind the rows of the others
    return 1;
  };
  ScoreSpec score;
  score.prompt_kind = PromptKind::kIds;
  const std::vector<int32_t> text = harness.tokenizer().Ids("abcd");
  score.ids = text;
  score.handler = handler;
  EXPECT_FALSE(harness.engine().Score(score).ok());
  EXPECT_FALSE(harness.engine().Metrics().healthy);
  harness.Poll();
  EXPECT_EQ(harness.Of(ends).reason, FinishReason::kLength);
  EXPECT_EQ(harness.Of(ends).text, "a");
  EXPECT_EQ(harness.Of(runs).reason, FinishReason::kError);
  EXPECT_EQ(harness.Of(runs).text, "a") << "what was computed before the failure";
}

}  // namespace
}  // namespace llm
