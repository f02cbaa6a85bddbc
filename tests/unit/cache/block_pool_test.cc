// Free, held, cached: how blocks move between them, and which one is evicted.
#include "src/cache/block_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace llm {
namespace {

BlockId Cache(BlockPool* pool) {
  const BlockId block = pool->Allocate().block;
  pool->SetFindable(block, true);
  pool->Release(block);
  return block;
}

TEST(BlockPoolTest, HandsOutEachBlockOnceAndThenNone) {
  BlockPool pool(3);
  std::vector<bool> seen(3, false);
  for (int i = 0; i < 3; ++i) {
    const BlockPool::Allocation allocation = pool.Allocate();
    EXPECT_FALSE(allocation.evicted);
    EXPECT_FALSE(seen[static_cast<size_t>(allocation.block)]);
    seen[static_cast<size_t>(allocation.block)] = true;
  }
  EXPECT_EQ(pool.Allocate().block, kNullBlock);
  EXPECT_EQ(pool.num_held(), 3);
}

TEST(BlockPoolTest, EvictsTheLeastRecentlyReleasedBlockFirst) {
  BlockPool pool(3);
  const BlockId a = Cache(&pool);
  const BlockId b = Cache(&pool);
  const BlockId c = Cache(&pool);
  pool.AddRef(a);
  pool.Release(a);
  for (BlockId expected : {b, c, a}) {
    const BlockPool::Allocation allocation = pool.Allocate();
    EXPECT_EQ(allocation.block, expected);
    EXPECT_TRUE(allocation.evicted);
  }
}

TEST(BlockPoolTest, TakesFreeBlocksBeforeItEvicts) {
  BlockPool pool(2);
  Cache(&pool);
  EXPECT_FALSE(pool.Allocate().evicted);
  EXPECT_TRUE(pool.Allocate().evicted);
}

TEST(BlockPoolTest, KeepsASharedBlockHeldUntilItsLastReference) {
  BlockPool pool(1);
  const BlockId block = pool.Allocate().block;
  pool.AddRef(block);
  pool.Release(block);
  EXPECT_EQ(pool.num_held(), 1);
  pool.Release(block);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockPoolTest, KeepsAPinnedBlockAndItsSession) {
  BlockPool pool(2);
  const BlockId block = pool.Allocate().block;
  pool.SetFindable(block, true);
  pool.Release(block, 7);
  pool.Pin(block);
  pool.Pin(block);
  EXPECT_EQ(pool.num_pinned(), 1);
  Cache(&pool);
  EXPECT_NE(pool.Allocate().block, block);
  EXPECT_EQ(pool.Allocate().block, kNullBlock);
  pool.Unpin(block);
  EXPECT_EQ(pool.num_pinned(), 1);
  pool.Unpin(block);
  EXPECT_EQ(pool.num_pinned(), 0);
  EXPECT_EQ(pool.num_cached(), 1);
}

TEST(BlockPoolTest, GivesABlockToNoSessionOnceTwoHaveUsedIt) {
  BlockPool pool(2);
  const BlockId shared = pool.Allocate().block;
  pool.SetFindable(shared, true);
  pool.Release(shared, 7);
  for (uint64_t session : {8u, 7u}) {
    pool.AddRef(shared);
    pool.Release(shared, session);
  }
  const BlockId own = pool.Allocate().block;
  pool.SetFindable(own, true);
  pool.Release(own, 7);
  pool.Hint(7, SessionHint::kClosed);
  EXPECT_EQ(pool.next_evicted(), own);
}

TEST(BlockPoolTest, FreesACachedBlockThatCanNoLongerBeFound) {
  BlockPool pool(1);
  const BlockId block = Cache(&pool);
  EXPECT_EQ(pool.num_cached(), 1);
  pool.SetFindable(block, false);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_TRUE(pool.CheckInvariants().ok());
}

TEST(BlockPoolTest, KeepsItsInvariantsUnderRandomUse) {
  std::mt19937 random(11);
  BlockPool pool(9);
  std::vector<BlockId> held;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t choice = random() % 4;
    if (choice == 0) {
      const int available = pool.num_available();
      const BlockPool::Allocation allocation = pool.Allocate();
      if (allocation.block != kNullBlock) held.push_back(allocation.block);
      ASSERT_EQ(allocation.block == kNullBlock, available == 0);
    } else if (choice == 1 && !held.empty()) {
      const size_t index = random() % held.size();
      pool.Release(held[index]);
      held.erase(held.begin() + static_cast<ptrdiff_t>(index));
    } else if (choice == 2 && !held.empty()) {
      pool.SetFindable(held[random() % held.size()], random() % 2 == 0);
    } else {
      const BlockId block = static_cast<BlockId>(random() % 9);
      if (pool.num_refs(block) == 0 && !pool.cached(block)) continue;
      pool.AddRef(block);
      held.push_back(block);
    }
    ASSERT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
    ASSERT_EQ(pool.num_free() + pool.num_held() + pool.num_cached(), 9);
  }
}

}  // namespace
}  // namespace llm
