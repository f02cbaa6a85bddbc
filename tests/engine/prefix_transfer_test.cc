// Prefixes that leave an engine and come into another: what is found then, and that answers stay.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

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

// A block before each step.
class SlicedTransferTest : public PrefixTransferTest {
 protected:
  static HarnessOptions Sliced() {
    HarnessOptions options = Options();
    options.engine.slice_bytes = 1;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Windows, SlicedTransferTest, testing::Values(0, 6, 9));

TEST_P(SlicedTransferTest, AStreamGoesOnWhileAPrefixIsSavedAndItsBlocksAreHeld) {
  EngineHarness harness(Sliced());
  const uint64_t stream = harness.Submit(harness.Spec("stream", 60));
  harness.Step();
  int num_shared = 0;  // steps of the stream beside a prefix that is held
  harness.runner().before = [&](int, const StepPlan& plan) {
    EXPECT_EQ(plan.chunks.at(0).sequence->request.id, stream);
    const bool computed = plan.chunks.size() == 1;
    if (computed && harness.engine().scheduler().Running().size() == 2) ++num_shared;
    return absl::OkStatus();
  };
  const auto image = harness.engine().ReadPrefix(PrefixSpec(kPrefix));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(num_shared, 7) << "the last of eight slices comes before a step without it";
  const auto whole = ComputedElsewhere(Options(), kPrefix, &allocator_);
  for (int32_t i = 0; i < whole->num_blocks(); ++i) {
    for (size_t g = 0; g < whole->shape().groups.size(); ++g) {
      const int group = static_cast<int>(g);
      ASSERT_EQ(whole->block(i, group) == nullptr, (*image)->block(i, group) == nullptr);
      if (whole->block(i, group) == nullptr) continue;
      EXPECT_EQ(std::memcmp(whole->block(i, group), (*image)->block(i, group),
                            whole->shape().groups[g].block_bytes),
                0);
    }
  }
  harness.RunAll();
}

TEST_P(SlicedTransferTest, AStreamGoesOnWhileAPrefixIsLoaded) {
  EngineHarness harness(Sliced());
  const uint64_t stream = harness.Submit(harness.Spec("stream", 60));
  harness.Step();
  const auto image = ComputedElsewhere(Options(), kPrefix, &allocator_);
  const int before = harness.runner().steps();
  ASSERT_TRUE(harness.engine().RestorePrefix(image, "", false).ok());
  harness.CheckInvariants();
  EXPECT_EQ(harness.runner().steps() - before, 8) << "a step a block";
  Received answer;
  EXPECT_EQ(CachedTokens(&harness, harness.Spec(kPrefix + "more", 2), &answer), 32);
  EXPECT_EQ(harness.Of(stream).ids, RunAlone(Options(), harness.Spec("stream", 60)).ids);
}

// `blow` comes inside the n-th step of a stream while a prefix is saved or loaded.
void ForEachStep(const HarnessOptions& options, bool restore, absl::StatusCode expected,
                 const std::shared_ptr<KvImage>& image,
                 const std::function<void(EngineHarness*, uint64_t stream)>& blow) {
  bool over = false;
  for (int n = 0; !over; ++n) {
    SCOPED_TRACE(testing::Message() << "step " << n);
    EngineHarness harness(options);
    const uint64_t stream = harness.Submit(harness.Spec("stream", 60));
    harness.Step();
    bool blown = false;
    harness.runner().before = [&](int step, const StepPlan&) {
      if (step == n + 1) {
        blown = true;
        blow(&harness, stream);
      }
      return absl::OkStatus();
    };
    const absl::Status status = restore ? harness.engine().RestorePrefix(image, "", false).status()
                                        : harness.engine().ReadPrefix(PrefixSpec(kPrefix)).status();
    over = !blown;
    if (over) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_GT(n, 7);
    } else if (!status.ok()) {  // in the step that ended it, it came too late
      EXPECT_EQ(status.code(), expected) << status;
    }
    if (!harness.engine().Shutdown(-1).ok()) FAIL();
    EXPECT_EQ(harness.engine().Metrics().scheduler.held_blocks_current, 0);
  }
}

TEST_P(SlicedTransferTest, ACancelOrAShutdownBetweenSlicesEndsItWithAStatus) {
  const auto image = ComputedElsewhere(Options(), kPrefix, &allocator_);
  for (const bool restore : {false, true}) {
    ForEachStep(Sliced(), restore, absl::StatusCode::kCancelled, image,
                [](EngineHarness* harness, uint64_t stream) {
                  harness->engine().Cancel(stream + 1).IgnoreError();
                });
    ForEachStep(
        Sliced(), restore, absl::StatusCode::kCancelled, image,
        [](EngineHarness* harness, uint64_t) { harness->engine().Shutdown(0).IgnoreError(); });
  }
}

TEST_P(SlicedTransferTest, ARequestThatNeedsTheBlocksOfALoadGetsThem) {
  HarnessOptions options = Sliced();
  for (int& blocks : options.scheduler.num_blocks) blocks = 20;
  options.scheduler.admission = AdmissionPolicy::kGreedy;
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 80;
  EngineHarness harness(options);
  const auto image = ComputedElsewhere(Options(), kPrefix, &allocator_);
  const std::string text(46, 'q');  // twelve blocks, and soon the others
  const RequestSpec running = harness.Spec(text, 34);
  const uint64_t id = harness.Submit(running);
  for (int step = 0; step < 4; ++step) harness.Step();
  int num_tries = 0;
  absl::Status status;
  for (; status.ok() && num_tries < 4; ++num_tries) {
    status = harness.engine().RestorePrefix(image, std::to_string(num_tries), false).status();
    harness.CheckInvariants();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id).ids, RunAlone(options, running).ids);
  EXPECT_EQ(harness.Of(id).stats.preemptions, 0);
}

TEST_P(SlicedTransferTest, APreemptedSaveGoesOnWhereItWas) {
  HarnessOptions options = Sliced();
  for (int& blocks : options.scheduler.num_blocks) blocks = 20;
  options.scheduler.admission = AdmissionPolicy::kGreedy;
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 80;
  EngineHarness harness(options);
  const std::string text(42, 'q');
  const uint64_t id = harness.Submit(harness.Spec(text, 30));
  for (int step = 0; step < 3; ++step) harness.Step();
  const auto image = harness.engine().ReadPrefix(PrefixSpec(kPrefix));
  ASSERT_TRUE(image.ok()) << image.status();
  const auto whole = ComputedElsewhere(Options(), kPrefix, &allocator_);
  EXPECT_EQ(
      std::memcmp(whole->block(7, 0), (*image)->block(7, 0), whole->shape().groups[0].block_bytes),
      0);
  EXPECT_EQ(harness.engine().Metrics().scheduler.preemptions_total, 1u);
  harness.RunAll();
  harness.Poll();
  EXPECT_EQ(harness.Of(id).num_finished, 1);
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
