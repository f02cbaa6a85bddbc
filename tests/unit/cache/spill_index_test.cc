// What the second tier's index finds, and whose slot goes next.
#include "src/cache/spill_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <vector>

namespace llm {
namespace {

constexpr int32_t kBlockSize = 4;

struct Block {
  std::vector<int32_t> tokens;
  PrefixBlockId id;

  explicit Block(uint64_t key, int group = 0, uint64_t parent = 7) {
    for (int32_t i = 0; i < kBlockSize; ++i) tokens.push_back(static_cast<int32_t>(key) + i);
    id = {.key = {key, 1}, .parent_key = {parent, 2}, .tokens = tokens, .group = group};
  }
};

TEST(SpillIndexTest, FindsABlockOnlyWhenEverythingOfItAgrees) {
  SpillIndex index(4, kBlockSize);
  const Block block(5, 1);
  const SpillIndex::Slot slot = index.Add(block.id, 99);
  EXPECT_EQ(index.Find(block.id), slot);
  EXPECT_EQ(index.checksum(slot), 99u);
  EXPECT_EQ(index.Find(Block(6, 1).id), SpillIndex::kNoSlot);
  EXPECT_EQ(index.Find(Block(5, 0).id), SpillIndex::kNoSlot) << "another group";
  EXPECT_EQ(index.Find(Block(5, 1, 8).id), SpillIndex::kNoSlot) << "another parent";
  Block other(5, 1);
  ++other.tokens[3];
  EXPECT_EQ(index.Find(other.id), SpillIndex::kNoSlot) << "other tokens of the same key";
}

TEST(SpillIndexTest, GivesTheSlotOfTheLeastRecentlyUsedBlockToTheNext) {
  SpillIndex index(3, kBlockSize);
  const Block a(10), b(20), c(30), d(40), e(50);
  const SpillIndex::Slot slot_a = index.Add(a.id, 0);
  const SpillIndex::Slot slot_b = index.Add(b.id, 0);
  index.Add(c.id, 0);
  index.Touch(slot_a);
  EXPECT_EQ(index.Add(d.id, 0), slot_b);
  EXPECT_EQ(index.Find(b.id), SpillIndex::kNoSlot);
  EXPECT_EQ(index.Find(a.id), slot_a);
  index.Remove(slot_a);
  EXPECT_EQ(index.size(), 2);
  EXPECT_EQ(index.Add(e.id, 0), slot_a) << "a free one comes first";
  index.Clear();
  EXPECT_EQ(index.size(), 0);
  for (const Block* block : {&a, &b, &c, &d, &e}) {
    EXPECT_EQ(index.Find(block->id), SpillIndex::kNoSlot);
  }
}

TEST(SpillIndexTest, GivesTheSlotOfADemotedBlockBeforeOlderOnes) {
  SpillIndex index(3, kBlockSize);
  const Block a(10), b(20), c(30), d(40), e(50);
  const SpillIndex::Slot slot_a = index.Add(a.id, 0);
  index.Add(b.id, 0);
  const SpillIndex::Slot slot_c = index.Add(c.id, 0);
  index.Demote(slot_c);
  EXPECT_EQ(index.Add(d.id, 0), slot_c);
  EXPECT_EQ(index.Add(e.id, 0), slot_a) << "then the least recently used";
}

TEST(SpillIndexTest, AgreesWithAListUnderRandomUse) {
  std::mt19937 random(3);
  SpillIndex index(16, kBlockSize);
  std::list<uint64_t> order;  // most recent first
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t key = random() % 40 * 64;  // some share a bucket
    const Block block(key);
    const auto known = std::find(order.begin(), order.end(), key);
    const SpillIndex::Slot slot = index.Find(block.id);
    ASSERT_EQ(slot != SpillIndex::kNoSlot, known != order.end()) << "step " << i;
    if (slot == SpillIndex::kNoSlot) {
      index.Add(block.id, key);
      if (order.size() == 16) order.pop_back();
      order.push_front(key);
    } else if (random() % 3 == 0) {
      index.Remove(slot);
      order.erase(known);
    } else {
      ASSERT_EQ(index.checksum(slot), key);
      index.Touch(slot);
      order.splice(order.begin(), order, known);
    }
    ASSERT_EQ(index.size(), static_cast<int32_t>(order.size()));
  }
}

}  // namespace
}  // namespace llm
