// The second tier: what comes back and when, and that no answer ever depends on the file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

constexpr int32_t kBlockSize = 4;

// Scheduler, blocks of bytes and the tier, without an engine: costs are what the test says.
class SpillTierTest : public testing::Test {
 protected:
  class Blocks : public Runner {
   public:
    absl::StatusOr<StepLogits> Execute(const StepPlan&) override { return StepLogits(); }
    size_t block_bytes(int) const override { return sizeof(uint64_t); }
    absl::Status ReadBlock(int, BlockId block, std::byte* out) const override {
      std::memcpy(out, &contents[static_cast<size_t>(block)], sizeof(uint64_t));
      return absl::OkStatus();
    }
    absl::Status WriteBlock(int, BlockId block, const std::byte* from) override {
      std::memcpy(&contents[static_cast<size_t>(block)], from, sizeof(uint64_t));
      return absl::OkStatus();
    }
    std::vector<uint64_t> contents = std::vector<uint64_t>(16);
  };

  // Reading takes no time on a clock that stands still; computing a token takes 1 ms.
  void SetUp() override {
    SchedulerOptions options;
    options.max_context_tokens = 64;
    options.block_size = kBlockSize;
    options.groups = {KvGroupSpec{0, {0}}};
    options.num_blocks = {16};
    auto scheduler = Scheduler::Create(options);
    ASSERT_TRUE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
    StartTier(1 << 10);
    const LayerWindows windows(options.groups);
    for (int step = 0; step < 40; ++step) {
      StepWork work = windows.Chunk(100 + step, 1);
      if (step % 2 == 0) work = work + windows.Chunk(0, 2 + step);
      cost_.Note(work, static_cast<int64_t>(1e6 + 1e6 * work.prefill_tokens));
    }
  }
  void StartTier(uint64_t bytes, std::shared_ptr<const Clock> clock = nullptr) {
    if (clock == nullptr) clock = clock_;
    const KvShape shape = {.block_size = kBlockSize, .groups = {{0, 1, sizeof(uint64_t)}}};
    auto tier = SpillTier::Create({testing::TempDir(), bytes}, shape, &runner_, clock, Logger());
    ASSERT_TRUE(tier.ok()) << tier.status();
    tier_ = *std::move(tier);
    scheduler_->SetEvictionListener(tier_.get());
  }
  std::unique_ptr<Sequence> MakeSequence(int32_t first, int32_t size) {
    auto sequence = std::make_unique<Sequence>();
    for (int32_t i = 0; i < size; ++i) sequence->request.prompt.push_back(first + i);
    sequence->request.stop.max_new_tokens = 1;
    sequence->tokens = sequence->request.prompt;
    return sequence;
  }
  // Computes a prompt, each block's contents being its first token, and ends.
  int32_t Run(int32_t first, int32_t size) {
    std::unique_ptr<Sequence> sequence = MakeSequence(first, size);
    scheduler_->Add(sequence.get());
    int32_t cached = -1;
    while (sequence->num_computed_tokens < size) {
      const StepPlan plan = scheduler_->Plan({.max_tokens = 64}, 1);
      if (cached < 0) cached = plan.chunks[0].begin;
      for (int32_t i = 0; i < size / kBlockSize; ++i) {
        const BlockId block = sequence->block_tables[0][static_cast<size_t>(i)];
        uint64_t& contents = runner_.contents[static_cast<size_t>(block)];
        const auto wanted = static_cast<uint64_t>(first + i * kBlockSize);
        if (i * kBlockSize < cached) {
          EXPECT_EQ(contents, wanted) << "block " << i;
        }
        contents = wanted;
      }
      scheduler_->Commit(plan);
    }
    scheduler_->Remove(sequence.get());
    EXPECT_TRUE(scheduler_->CheckInvariants().ok()) << scheduler_->CheckInvariants();
    return cached;
  }
  // Whether blocks came back.
  bool Return(int32_t first, int32_t size, int32_t most_blocks = 100) {
    return Return(*MakeSequence(first, size), cost_, most_blocks);
  }
  bool Return(const Sequence& sequence, const StepCostModel& cost, int32_t most_blocks) {
    const uint64_t before = tier_->counters().returned_blocks_total;
    SpillReturn back;
    back.place = scheduler_->PlaceOf(sequence);
    back.adoption.request = &sequence.request;
    num_slices_ = 1;
    while (!tier_->Return(&back, sequence, cost, scheduler_.get(), most_blocks)) {
      EXPECT_TRUE(scheduler_->CheckInvariants().ok()) << scheduler_->CheckInvariants();
      ++num_slices_;
    }
    scheduler_->DropAdoption(&back.adoption);
    EXPECT_TRUE(scheduler_->CheckInvariants().ok()) << scheduler_->CheckInvariants();
    return tier_->counters().returned_blocks_total > before;
  }
  void Damage(int64_t slot) {
    const char byte = 0x5a;
    ASSERT_EQ(pwrite(tier_->fd(), &byte, 1,
                     static_cast<off_t>(slot * static_cast<int64_t>(tier_->slot_bytes()) + 3)),
              1);
  }

  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Blocks runner_;
  std::unique_ptr<SpillTier> tier_;
  std::unique_ptr<Scheduler> scheduler_;
  StepCostModel cost_;
  int num_slices_ = 0;  // of the last return
};

TEST_F(SpillTierTest, BringsBackWhatWasEvictedWithItsContents) {
  Run(100, 32);
  Run(1000, 60);
  ASSERT_GT(tier_->counters().spilled_blocks_total, 0u);
  EXPECT_TRUE(Return(100, 33));
  EXPECT_EQ(Run(100, 33), 32);
  const SpillCounters counters = tier_->counters();
  EXPECT_EQ(counters.read_bytes_total, counters.returned_blocks_total * sizeof(uint64_t));
  EXPECT_EQ(counters.written_bytes_total, counters.spilled_blocks_total * sizeof(uint64_t));
  EXPECT_EQ(counters.failed_blocks_total, 0u);
}

TEST_F(SpillTierTest, ABlockThatIsEvictedAgainIsNotWrittenAgain) {
  Run(100, 32);
  Run(1000, 60);
  EXPECT_TRUE(Return(100, 33));
  const uint64_t written = tier_->counters().spilled_blocks_total;
  ASSERT_EQ(written, 14u) << "the first prompt but for a block, and what made room for its return";
  Run(2000, 60);  // evicts the first one again, and the eight blocks that are left of the second
  EXPECT_EQ(tier_->counters().spilled_blocks_total, 22u);
}

TEST_F(SpillTierTest, StaysAsideWhenComputingIsExpectedToBeFaster) {
  Run(100, 32);
  Run(1000, 60);
  StepCostModel fast;
  const LayerWindows windows({KvGroupSpec{0, {0}}});
  for (int step = 0; step < 40; ++step) fast.Note(windows.Chunk(0, 2 + step), 1000 + step / 8);
  const std::unique_ptr<Sequence> sequence = MakeSequence(100, 33);
  EXPECT_FALSE(Return(*sequence, fast, 100));
  EXPECT_FALSE(Return(*sequence, StepCostModel(), 100)) << "nothing is known";
  EXPECT_EQ(tier_->counters().returned_blocks_total, 0u);
}

TEST_F(SpillTierTest, BringsThemBackInSlices) {
  Run(100, 32);
  Run(1000, 60);
  EXPECT_TRUE(Return(100, 33, 3));
  EXPECT_EQ(num_slices_, 3);
  EXPECT_EQ(Run(100, 33), 32);
}

TEST_F(SpillTierTest, ADamagedBlockInALaterSliceIsAMissToo) {
  Run(100, 32);
  Run(1000, 60);
  Damage(3);  // block 4
  EXPECT_TRUE(Return(100, 33, 1));
  EXPECT_EQ(tier_->counters().failed_blocks_total, 1u);
  EXPECT_EQ(Run(100, 33), 16);
}

TEST_F(SpillTierTest, ADamagedBlockIsAMissAndThoseBeforeItComeBack) {
  Run(100, 32);
  Run(1000, 60);  // the tail of the first is evicted first: its block 7 is in slot 0
  Damage(3);      // block 4
  EXPECT_TRUE(Return(100, 33));
  EXPECT_EQ(tier_->counters().failed_blocks_total, 1u);
  EXPECT_EQ(Run(100, 33), 16);
}

TEST_F(SpillTierTest, HoldsTheMostRecentBlocksWhenTheFileIsFull) {
  StartTier(8 * sizeof(uint64_t));
  Run(100, 32);
  Run(1000, 60);
  Run(2000, 60);
  EXPECT_EQ(tier_->counters().blocks_current, 8u);
  EXPECT_FALSE(Return(100, 33));
  EXPECT_TRUE(Return(1000, 33)) << "its tail was evicted first, its beginning last";
  EXPECT_EQ(Run(1000, 33), 32);
}

TEST_F(SpillTierTest, AReturnFromAFullFileDoesNotEvictItself) {
  StartTier(8 * sizeof(uint64_t));
  Run(100, 32);
  Run(1000, 60);
  EXPECT_TRUE(Return(100, 33));
  EXPECT_EQ(tier_->counters().returned_blocks_total, 7u) << "one was still cached";
  EXPECT_EQ(tier_->counters().read_bytes_total, 7 * sizeof(uint64_t)) << "each of them once";
  EXPECT_EQ(Run(100, 33), 32);
}

// A clock on which each look takes 1 ms, as a disk does that is behind.
class SlowClock : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_ += 1'000'000; }

 private:
  mutable int64_t now_ns_ = 0;
};

TEST_F(SpillTierTest, AStepWritesNoMoreThanItsStreamsCanWaitFor) {
  StartTier(1 << 10, std::make_shared<SlowClock>());
  Run(100, 32);
  Run(1000, 60);  // evicts all of the first
  EXPECT_EQ(tier_->counters().spilled_blocks_total, 4u);
  tier_->BeginStep();
  Run(2000, 60);
  EXPECT_EQ(tier_->counters().spilled_blocks_total, 8u);
}

TEST_F(SpillTierTest, AFlushTellsItNothingAndAClearForgetsAll) {
  Run(100, 32);
  scheduler_->FlushPrefixCache();
  EXPECT_EQ(tier_->counters().spilled_blocks_total, 0u);
  Run(100, 32);
  Run(1000, 60);
  tier_->Clear();
  EXPECT_EQ(tier_->counters().blocks_current, 0u);
  EXPECT_FALSE(Return(100, 33));
}

TEST_F(SpillTierTest, NeedsAFolderAndRoomForABlock) {
  const KvShape shape = {.block_size = kBlockSize, .groups = {{0, 1, 64}}};
  const auto code = [&](const std::string& folder, uint64_t bytes, const KvShape& of) {
    return SpillTier::Create({folder, bytes}, of, &runner_, clock_, Logger()).status().code();
  };
  EXPECT_EQ(code("/no/such/folder", 1 << 20, shape), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(testing::TempDir(), 63, shape), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(testing::TempDir(), 1 << 20, KvShape()), absl::StatusCode::kUnimplemented);
}

// Whatever the file does, each answer is the one that the request has alone. Half of the seeds
// copy a block at a time.
void RunTraffic(uint32_t seed, bool damage, int window) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  HarnessOptions options;
  options.scheduler.num_blocks = {24};
  if (window > 0) {
    options.scheduler.groups.push_back(KvGroupSpec{window, {1}});
    options.scheduler.num_blocks.push_back(24);
  }
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 80;
  HarnessOptions with_tier = options;
  if (seed % 4 < 2) with_tier.engine.slice_bytes = 1;
  with_tier.spill = {testing::TempDir(), 64 * kBlockSize * sizeof(uint64_t)};
  EngineHarness harness(with_tier);
  std::map<uint64_t, std::string> texts;
  std::vector<std::string> roots;
  for (int i = 0; i < 6; ++i) roots.push_back(std::string(40, static_cast<char>('a' + i)));
  for (int i = 0; i < 60; ++i) {
    const std::string text = roots[static_cast<size_t>(below(6))].substr(0, 20 + below(21)) +
                             std::string(static_cast<size_t>(1 + below(8)), 'z');
    const uint64_t id = harness.Submit(harness.Spec(text, 1 + below(12)));
    texts[id] = text;
    for (int step = below(6); step > 0; --step) harness.Step();
    if (below(12) == 0) harness.engine().Cancel(id).IgnoreError();
    if (below(20) == 0) {
      EXPECT_TRUE(harness.engine().FlushCache().ok());
    }
    if (damage && below(3) == 0) {
      const char byte = static_cast<char>(below(256));
      const auto at = static_cast<off_t>(below(64 * kBlockSize * 8));
      EXPECT_EQ(pwrite(harness.spill().fd(), &byte, 1, at), 1);
    }
    if (damage && below(10) == 0) {
      EXPECT_EQ(ftruncate(harness.spill().fd(), below(1024)), 0);
    }
  }
  harness.RunAll();
  for (const auto& [id, text] : texts) {
    const Received& received = harness.Of(id);
    EXPECT_EQ(received.num_finished, 1);
    const Received alone = RunAlone(options, harness.Spec(text, 12));
    ASSERT_LE(received.ids.size(), alone.ids.size());
    EXPECT_TRUE(std::equal(received.ids.begin(), received.ids.end(), alone.ids.begin())) << text;
  }
}

TEST(SpillEngineTest, AnswersAreThoseOfRecomputation) {
  for (uint32_t seed = 1; seed <= 6; ++seed) RunTraffic(seed, false, seed % 2 == 0 ? 0 : 10);
}

TEST(SpillEngineTest, ADamagedOrCutFileNeverChangesAnAnswer) {
  for (uint32_t seed = 11; seed <= 16; ++seed) RunTraffic(seed, true, seed % 2 == 0 ? 0 : 10);
}

// A pool of 20 blocks from which the prefix of nine was evicted, and what steps cost is known.
class SpillSliceTest : public testing::Test {
 protected:
  static HarnessOptions Options() {
    HarnessOptions options;
    options.engine.slice_bytes = 1;  // a block before each step
    options.scheduler.num_blocks = {20};
    options.scheduler.max_context_tokens = options.engine.max_context_tokens = 80;
    options.spill = {testing::TempDir(), 1 << 20};
    return options;
  }
  void SetUp() override {
    SetUpAgain();
    ASSERT_EQ(Returned(), 0u);
  }
  void SetUpAgain() {
    harness_.Submit(harness_.Spec(kPrefix, 2));
    harness_.RunAll();
    for (char c = 'a'; c < 'f'; ++c) {
      harness_.Submit(harness_.Spec(std::string(static_cast<size_t>(40 + c - 'a'), c), 4));
      harness_.RunAll();
    }
  }
  uint64_t Returned() { return harness_.engine().Metrics().step.spill.returned_blocks_total; }

  const std::string kPrefix = std::string(38, 'p');
  EngineHarness harness_{Options()};
};

TEST_F(SpillSliceTest, OthersGoOnWhileAPrefixReturnsAndPassTheRequestThatWaitsForIt) {
  const uint64_t stream = harness_.Submit(harness_.Spec("stream", 20));
  harness_.Step();
  const uint64_t id = harness_.Submit(harness_.Spec(kPrefix, 2));
  for (int step = 1; step < 9; ++step) {
    harness_.Step();
    harness_.Poll();
    EXPECT_EQ(Returned(), static_cast<uint64_t>(step));
    EXPECT_EQ(harness_.Of(stream).ids.size(), static_cast<size_t>(1 + step));
    EXPECT_EQ(harness_.engine().Metrics().scheduler.running_current, 1);
  }
  const uint64_t quick = harness_.Submit(harness_.Spec("quick", 1));
  harness_.Step();
  harness_.Poll();
  EXPECT_EQ(harness_.Of(quick).num_finished, 1);
  harness_.RunAll();
  EXPECT_EQ(harness_.Of(id).stats.cached_tokens, 36);
  EXPECT_EQ(harness_.Of(id).ids, RunAlone(Options(), harness_.Spec(kPrefix, 2)).ids);
}

TEST_F(SpillSliceTest, WhoSharesAPrefixThatIsOnItsWayWaitsForItInsteadOfReadingItAgain) {
  const std::string more = kPrefix + "more";
  const uint64_t first = harness_.Submit(harness_.Spec(kPrefix, 2));
  const uint64_t second = harness_.Submit(harness_.Spec(more, 2));
  harness_.RunAll();
  EXPECT_EQ(harness_.Of(first).stats.cached_tokens, 36);
  EXPECT_GE(harness_.Of(second).stats.cached_tokens, 36);
  EXPECT_EQ(Returned(), 9u);
}

TEST_F(SpillSliceTest, ACancelAFlushOrAShutdownBetweenSlicesLeavesNothingHeld) {
  for (int what = 0; what < 3; ++what) {
    const uint64_t first = harness_.Submit(harness_.Spec(kPrefix, 2));
    const uint64_t second = harness_.Submit(harness_.Spec(kPrefix, 3));
    const uint64_t before = Returned();
    for (int step = 0; step < 3; ++step) harness_.Step();
    EXPECT_GT(Returned(), before);
    if (what == 2) break;
    EXPECT_TRUE(
        (what == 0 ? harness_.engine().Cancel(first) : harness_.engine().FlushCache()).ok());
    harness_.RunAll();
    EXPECT_EQ(harness_.Of(second).ids, RunAlone(Options(), harness_.Spec(kPrefix, 3)).ids);
    SetUpAgain();
  }
  EXPECT_TRUE(harness_.engine().Shutdown(-1).ok());
  EXPECT_EQ(harness_.engine().Metrics().scheduler.held_blocks_current, 0);
}

TEST(SpillEngineTest, AFileThatCannotGrowEndsTheWritingAlone) {
  HarnessOptions options;
  options.scheduler.num_blocks = {20};
  options.scheduler.max_context_tokens = options.engine.max_context_tokens = 80;
  options.spill = {testing::TempDir(), 1 << 20};
  EngineHarness harness(options);
  const int full = open("/dev/full", O_RDWR);
  ASSERT_GE(full, 0);
  ASSERT_GE(dup2(full, harness.spill().fd()), 0);
  close(full);
  for (char c = 'a'; c < 'f'; ++c) {
    harness.Submit(harness.Spec(std::string(60, c), 4));
    harness.RunAll();
  }
  EXPECT_EQ(harness.engine().Metrics().step.spill.spilled_blocks_total, 0u);
  EXPECT_EQ(harness.engine().Metrics().step.finished_requests_total, 5u);
}

}  // namespace
}  // namespace llm
