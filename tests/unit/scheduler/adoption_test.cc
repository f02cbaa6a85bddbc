// Prefixes that are brought into blocks in slices, beside requests that run.
#include <numeric>

#include "tests/unit/scheduler/scheduler_fixture.h"

namespace llm {
namespace {

class AdoptionTest : public SchedulerTest {
 protected:
  AdoptionTest() {
    std::iota(tokens_.begin(), tokens_.end(), 500);
    Renew();
  }
  void Renew() {
    adoption_ = Adoption();
    adoption_.request = &request_;
    adoption_.tokens = tokens_;
  }
  absl::StatusOr<bool> Adopt(int32_t most_blocks) {
    const auto fill = [&](int32_t index, int, BlockId) {
      filled_.push_back(index);
      return index != unreadable_;
    };
    auto done = scheduler->Adopt(&adoption_, fill, most_blocks);
    EXPECT_TRUE(scheduler->CheckInvariants().ok()) << scheduler->CheckInvariants();
    return done;
  }
  // Tokens of the prefix that the next request finds.
  int32_t Found() {
    Sequence* sequence = Add(25, 500);
    const StepPlan plan = Plan(64);
    const int32_t found = plan.chunks.empty() ? -1 : plan.chunks.back().begin;
    scheduler->Rollback(plan);  // it must not publish the prefix itself
    scheduler->Remove(sequence);
    return found;
  }

  Request request_;
  std::vector<int32_t> tokens_ = std::vector<int32_t>(24);  // six blocks
  Adoption adoption_;
  std::vector<int32_t> filled_;
  int32_t unreadable_ = -1;
};

TEST_F(AdoptionTest, IsFoundOnceAllSlicesAreFilled) {
  Start(20);
  EXPECT_FALSE(*Adopt(4));
  EXPECT_EQ(scheduler->counters().held_blocks_current, 4);
  EXPECT_EQ(Found(), 0);
  EXPECT_TRUE(*Adopt(4));
  EXPECT_EQ(filled_, std::vector<int32_t>({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(scheduler->counters().held_blocks_current, 0);
  EXPECT_EQ(Found(), 24);
}

TEST_F(AdoptionTest, NothingIsFoundOfOneThatIsDroppedOrCannotBeRead) {
  Start(20);
  EXPECT_FALSE(*Adopt(5));
  scheduler->DropAdoption(&adoption_);
  EXPECT_EQ(scheduler->counters().held_blocks_current, 0);
  EXPECT_EQ(Found(), 0);
  EXPECT_EQ(Adopt(1).status().code(), absl::StatusCode::kResourceExhausted);
  Renew();
  unreadable_ = 3;
  EXPECT_FALSE(*Adopt(3));
  EXPECT_EQ(Adopt(3).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(scheduler->counters().held_blocks_current, 0);
  EXPECT_EQ(Found(), 0);
}

TEST_F(AdoptionTest, GivesWayToARunningRequestInsteadOfAVictim) {
  Start(12);
  Sequence* runs = Add(20);
  Step(64);
  EXPECT_FALSE(*Adopt(5));
  while (runs->num_tokens() < 32) Step(64);
  EXPECT_EQ(scheduler->counters().preemptions_total, 0u);
  const absl::Status dropped = Adopt(1).status();
  EXPECT_EQ(dropped.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(dropped.message().find("running requests needed"), absl::string_view::npos) << dropped;
}

TEST_F(AdoptionTest, WhoNeedsItsRoomWaitsForItsEnd) {
  Start(10);
  EXPECT_FALSE(*Adopt(4));
  Add(36, 2000);
  EXPECT_TRUE(Plan(64).chunks.empty());
  EXPECT_TRUE(*Adopt(4));
  EXPECT_EQ(Step(64).chunks.size(), 1u);
}

TEST_F(AdoptionTest, ASequenceThatAwaitsItsPrefixIsPassed) {
  Start(20);
  Sequence* waits = Add(25, 500);
  waits->awaits_prefix = true;
  Sequence* quick = Add(8, 2000);
  EXPECT_FALSE(*Adopt(3));
  EXPECT_EQ(Step(64).chunks.at(0).sequence, quick);
  EXPECT_TRUE(*Adopt(3));
  waits->awaits_prefix = false;
  const StepPlan plan = Step(64);
  EXPECT_EQ(plan.chunks.back().sequence, waits);
  EXPECT_EQ(plan.chunks.back().begin, 24);
}

}  // namespace
}  // namespace llm
