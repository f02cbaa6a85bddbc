// Pools and prefix cache together: publishing, releasing, evicting.
#include "src/cache/block_manager.h"

#include <gtest/gtest.h>

#include <vector>

namespace llm {
namespace {

constexpr int32_t kBlockSize = 4;

BlockManagerOptions Options(std::vector<int> windows, int num_blocks) {
  BlockManagerOptions options;
  options.block_size = kBlockSize;
  for (int window : windows) options.groups.push_back({window, {}});
  options.num_blocks.assign(windows.size(), num_blocks);
  options.max_context_tokens = 64;
  return options;
}

// What a sequence would do: takes blocks for `tokens`, publishes them and gives them back.
void ComputeAndRelease(BlockManager* blocks, const std::vector<int32_t>& tokens) {
  const int32_t size = static_cast<int32_t>(tokens.size());
  std::vector<BlockTable> tables(static_cast<size_t>(blocks->num_groups()));
  PrefixNodeId node = blocks->Enter(kNoPrefixNode, "", 0);
  for (int g = 0; g < blocks->num_groups(); ++g) {
    for (int32_t i = 0; i < size; i += kBlockSize)
      tables[static_cast<size_t>(g)].push_back(blocks->Allocate(g));
  }
  node = blocks->Publish(node, tokens, size, tables);
  blocks->ReleaseAll(node, tokens, size, 0, &tables);
  blocks->Leave(node);
}

TEST(BlockManagerTest, EvictsTailsBeforeHeads) {
  BlockManager blocks(Options({0}, 4));
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  ComputeAndRelease(&blocks, tokens);
  for (int32_t left : {3, 2, 1, 0}) {
    EXPECT_EQ(blocks.Match("", 0, tokens, 16).num_blocks, left + 1);
    blocks.Allocate(0);
    EXPECT_EQ(blocks.Match("", 0, tokens, 16).num_blocks, left);
  }
  EXPECT_EQ(blocks.num_evicted(), 4u);
}

TEST(BlockManagerTest, FindsThePartlyFilledBlockOfAReleasedSequence) {
  BlockManager blocks(Options({0}, 4));
  ComputeAndRelease(&blocks, {1, 2, 3, 4, 5, 6});
  const PrefixMatch match = blocks.Match("", 0, {1, 2, 3, 4, 5, 6, 7, 8, 9}, 8);
  EXPECT_EQ(match.num_blocks, 1);
  EXPECT_EQ(match.partial_tokens, 2);
}

TEST(BlockManagerTest, FlushDropsEveryCachedBlock) {
  BlockManager blocks(Options({0, 8}, 4));
  ComputeAndRelease(&blocks, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(blocks.pool(0).num_cached(), 3);
  blocks.Flush();
  EXPECT_EQ(blocks.pool(0).num_free(), 4);
  EXPECT_EQ(blocks.pool(1).num_free(), 4);
  EXPECT_EQ(blocks.Match("", 0, {1, 2, 3, 4, 5}, 4).num_blocks, 0);
}

TEST(BlockManagerTest, KeepsTheSecondPublishersBlockItsOwn) {
  BlockManager blocks(Options({0}, 4));
  const std::vector<int32_t> tokens = {1, 2, 3, 4};
  std::vector<BlockTable> first(1), second(1);
  first[0].push_back(blocks.Allocate(0));
  second[0].push_back(blocks.Allocate(0));
  PrefixNodeId first_node = blocks.Publish(blocks.Enter(kNoPrefixNode, "", 0), tokens, 4, first);
  PrefixNodeId second_node = blocks.Publish(blocks.Enter(kNoPrefixNode, "", 0), tokens, 4, second);
  EXPECT_EQ(first_node, second_node);
  EXPECT_EQ(blocks.PrefixBlock(first_node, 0), first[0][0]);
  blocks.ReleaseAll(second_node, tokens, 4, 0, &second);
  EXPECT_EQ(blocks.pool(0).num_cached(), 0);
  blocks.ReleaseAll(first_node, tokens, 4, 0, &first);
  EXPECT_EQ(blocks.pool(0).num_cached(), 1);
}

TEST(BlockManagerTest, PublishesNothingWithThePrefixCacheOff) {
  BlockManagerOptions options = Options({0}, 4);
  options.prefix_cache = false;
  BlockManager blocks(options);
  ComputeAndRelease(&blocks, {1, 2, 3, 4, 5});
  EXPECT_EQ(blocks.pool(0).num_free(), 4);
}

// All groups have windows, so paths outlive their blocks, and nodes can run out before blocks do.
TEST(BlockManagerTest, ReusesNodesOfOldPathsWhenTheyRunOut) {
  BlockManager blocks(Options({4}, 64));
  for (int32_t i = 0; i < 400; ++i) {
    std::vector<int32_t> tokens(40, i);
    ComputeAndRelease(&blocks, tokens);
    ASSERT_EQ(blocks.Match("", 0, tokens, 40).num_blocks, 10);
  }
}

}  // namespace
}  // namespace llm
