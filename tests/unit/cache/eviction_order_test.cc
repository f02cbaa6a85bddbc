// Which cached block goes next, and what hints about sessions change.
#include "src/cache/eviction_order.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace llm {
namespace {

constexpr uint64_t kAlice = 7;
constexpr uint64_t kBob = 8;

std::vector<BlockId> Drain(EvictionOrder* order) {
  std::vector<BlockId> blocks;
  while (order->next() != kNullBlock) {
    blocks.push_back(order->next());
    order->Remove(order->next());
    EXPECT_TRUE(order->CheckInvariants().ok()) << order->CheckInvariants();
  }
  return blocks;
}

// Blocks 0 and 2 are Alice's, 1 and 3 Bob's, 4 nobody's.
EvictionOrder Interleaved() {
  EvictionOrder order(8);
  order.Add(0, kAlice);
  order.Add(1, kBob);
  order.Add(2, kAlice);
  order.Add(3, kBob);
  order.Add(4, 0);
  return order;
}

TEST(EvictionOrderTest, IsTheOrderOfReleaseAcrossSessionsWithoutHints) {
  EvictionOrder order = Interleaved();
  EXPECT_EQ(Drain(&order), (std::vector<BlockId>{0, 1, 2, 3, 4}));
}

TEST(EvictionOrderTest, PutsAClosedSessionFirst) {
  EvictionOrder order = Interleaved();
  order.Hint(kBob, SessionHint::kClosed);
  EXPECT_EQ(Drain(&order), (std::vector<BlockId>{1, 3, 0, 2, 4}));
}

TEST(EvictionOrderTest, PutsOneThatWaitsForAHumanBeforeAndForAToolBehindTheOthers) {
  EvictionOrder order = Interleaved();
  order.Hint(kAlice, SessionHint::kToolCall);
  EXPECT_EQ(order.next(), 1);
  order.Hint(kBob, SessionHint::kHuman);
  EXPECT_EQ(Drain(&order), (std::vector<BlockId>{1, 3, 4, 0, 2}));
}

TEST(EvictionOrderTest, TakesTheLastHint) {
  EvictionOrder order = Interleaved();
  order.Hint(kAlice, SessionHint::kClosed);
  order.Hint(kAlice, SessionHint::kToolCall);
  order.Hint(kBob, SessionHint::kHuman);
  order.Hint(kBob, SessionHint::kNone);
  EXPECT_EQ(Drain(&order), (std::vector<BlockId>{1, 3, 4, 0, 2}));
}

TEST(EvictionOrderTest, LetsAToolCallGrowOldHoweverOftenItIsRepeated) {
  EvictionOrder order(8);
  order.Add(0, kAlice);
  int rounds = 0;
  for (; order.next() != 0 || order.size() < 2; ++rounds) {
    ASSERT_LT(rounds, 100);
    order.Hint(kAlice, SessionHint::kToolCall);
    if (order.contains(1)) order.Remove(1);
    order.Add(1, 0);
  }
  EXPECT_GT(rounds, 8) << "a hint that is worth less than the pool";
}

TEST(EvictionOrderTest, EvictsMuchOlderBlocksBeforeThoseOfAHuman) {
  EvictionOrder order(2);
  order.Add(0, 0);
  for (int i = 0; i < 100; ++i) {
    if (order.contains(1)) order.Remove(1);
    order.Add(1, kBob);
  }
  order.Hint(kBob, SessionHint::kHuman);
  EXPECT_EQ(order.next(), 0);
}

TEST(EvictionOrderTest, KnowsNothingOfASessionWhoseBlocksAreGone) {
  EvictionOrder order(4);
  order.Add(0, kAlice);
  order.Hint(kAlice, SessionHint::kClosed);
  order.Remove(0);
  order.Hint(kAlice, SessionHint::kClosed);
  order.Add(1, 0);
  order.Add(0, kAlice);
  EXPECT_EQ(Drain(&order), (std::vector<BlockId>{1, 0}));
}

TEST(EvictionOrderTest, TreatsSessionsBeyondItsBoundAsNone) {
  constexpr int kBlocks = EvictionOrder::kMaxSessions + 2;
  EvictionOrder order(kBlocks);
  for (BlockId block = 0; block < kBlocks; ++block) {
    order.Add(block, 1 + static_cast<uint64_t>(block));
  }
  order.Hint(kBlocks, SessionHint::kClosed);  // unknown
  EXPECT_EQ(order.next(), 0);
  order.Hint(2, SessionHint::kClosed);
  EXPECT_EQ(order.next(), 1);
  ASSERT_TRUE(order.CheckInvariants().ok()) << order.CheckInvariants();
  EXPECT_EQ(Drain(&order).size(), static_cast<size_t>(kBlocks));
}

// Against the definition, by search over all blocks.
class Model {
 public:
  explicit Model(int num_blocks) : blocks_(static_cast<size_t>(num_blocks)) {}

  void Add(BlockId block, uint64_t session) {
    bool known = false;
    for (const Entry& entry : blocks_) known |= entry.in && entry.session == session;
    if (!known) hints_[session] = SessionHint::kNone;
    blocks_[static_cast<size_t>(block)] = {true, session, num_releases_++};
  }
  void Remove(BlockId block) { blocks_[static_cast<size_t>(block)].in = false; }
  void Hint(uint64_t session, SessionHint hint) {
    if (session != 0) hints_[session] = hint;
  }
  BlockId next() const {
    BlockId best = kNullBlock;
    int64_t best_rank = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (!blocks_[i].in) continue;
      const int64_t rank = Rank(blocks_[i]);
      if (best != kNullBlock && rank >= best_rank) continue;
      best = static_cast<BlockId>(i);
      best_rank = rank;
    }
    return best;
  }

 private:
  struct Entry {
    bool in = false;
    uint64_t session = 0;
    int64_t release_index = 0;
  };
  int64_t Rank(const Entry& entry) const {
    const int64_t rounds = 4 * static_cast<int64_t>(blocks_.size());
    switch (hints_[entry.session]) {
      case SessionHint::kNone:
        return 2 * entry.release_index;
      case SessionHint::kToolCall:
        return 2 * (entry.release_index + rounds) + 1;
      case SessionHint::kHuman:
        return 2 * (entry.release_index - rounds) + 1;
      case SessionHint::kClosed:
        return entry.release_index - (int64_t{1} << 60);
    }
    return 0;
  }

  std::vector<Entry> blocks_;
  SessionHint hints_[8] = {};
  int64_t num_releases_ = 0;
};

TEST(EvictionOrderTest, AgreesWithASearchUnderRandomUse) {
  std::mt19937 random(5);
  EvictionOrder order(24);
  Model model(24);
  for (int i = 0; i < 50000; ++i) {
    const BlockId block = static_cast<BlockId>(random() % 24);
    const uint64_t session = random() % 8;
    if (random() % 6 == 0) {
      const SessionHint hint = static_cast<SessionHint>(random() % 4);
      if (session != 0) order.Hint(session, hint);
      model.Hint(session, hint);
    } else if (order.contains(block)) {
      order.Remove(block);
      model.Remove(block);
    } else {
      order.Add(block, session);
      model.Add(block, session);
    }
    ASSERT_TRUE(order.CheckInvariants().ok()) << order.CheckInvariants();
    // Equal ranks of two sessions are either's: removing one shows the other.
    ASSERT_EQ(order.next() == kNullBlock, model.next() == kNullBlock);
    if (order.next() == model.next()) continue;
    FAIL() << "step " << i << ": block " << order.next() << ", expected " << model.next();
  }
}

}  // namespace
}  // namespace llm
