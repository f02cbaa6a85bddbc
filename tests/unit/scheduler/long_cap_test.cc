// A bound on long requests: short ones pass, and nobody waits for ever.
#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

class LongCapTest : public SchedulerTest {
 protected:
  void StartCapped(int32_t max_long, int num_blocks = 100) {
    SchedulerOptions options;
    options.max_sequences = 8;
    options.max_context_tokens = 256;
    options.block_size = kBlockSize;
    options.groups = {{0, {}}};
    options.num_blocks = {num_blocks};
    options.max_long_sequences = max_long;
    options.long_tokens = 40;
    auto scheduler_or = Scheduler::Create(options);
    ASSERT_TRUE(scheduler_or.ok()) << scheduler_or.status();
    scheduler = std::move(scheduler_or).value();
  }
  static bool Runs(const Sequence* sequence) {
    return sequence->status == SequenceStatus::kRunning;
  }
};

TEST_F(LongCapTest, AShortRequestPassesLongOnesThatWait) {
  StartCapped(1);
  Sequence* first = Add(60);
  Sequence* second = Add(60, 1000);
  Sequence* quick = Add(10, 2000);
  Step(200);
  EXPECT_TRUE(Runs(first));
  EXPECT_FALSE(Runs(second));
  EXPECT_TRUE(Runs(quick));
}

TEST_F(LongCapTest, TheNextLongOneStartsWhenOneEndsBeforeAllThatCameAfterIt) {
  StartCapped(1, 40);
  Sequence* first = Add(100);
  Sequence* second = Add(120, 1000);
  Step(200);
  scheduler->Remove(first);
  Sequence* quick = Add(39, 2000);
  Step(200);
  EXPECT_TRUE(Runs(second));
  EXPECT_FALSE(Runs(quick)) << "the long one has what it needs first";
}

TEST_F(LongCapTest, ThoseThatPassedItAndGrewLongDoNotHoldItBack) {
  StartCapped(1);
  Sequence* first = Add(60);
  Sequence* second = Add(60, 1000);
  Sequence* quick = Add(39, 2000);
  for (int i = 0; i < 3; ++i) Step(200);
  ASSERT_GE(quick->num_tokens(), 40);
  EXPECT_FALSE(Runs(second));
  scheduler->Remove(first);
  Step(200);
  EXPECT_TRUE(Runs(second));
}

TEST_F(LongCapTest, WithoutABoundAllStart) {
  StartCapped(0);
  for (int i = 0; i < 4; ++i) Add(60, i * 1000);
  Step(256);
  EXPECT_EQ(scheduler->Running().size(), 4u);
}

TEST_F(LongCapTest, APrefillSharesItsStepWithTheShortOneBehindALongOne) {
  StartCapped(1);
  Sequence* first = Add(200);
  Add(200, 1000);
  Sequence* quick = Add(10, 2000);
  Step(64);
  Step(64);
  EXPECT_TRUE(Runs(quick));
  EXPECT_LT(first->num_computed_tokens, 200) << "while the document is still read";
}

TEST_F(LongCapTest, LongOnesAloneRunOneAfterTheOther) {
  StartCapped(1);
  std::vector<Sequence*> all;
  for (int i = 0; i < 3; ++i) all.push_back(Add(60, i * 1000));
  for (Sequence* sequence : all) {
    Step(256);
    EXPECT_TRUE(Runs(sequence));
    EXPECT_EQ(scheduler->Running().size(), 1u);
    scheduler->Remove(sequence);
  }
}

}  // namespace
}  // namespace llm
