// The tree of prefixes: what is found, by whom, and when nodes go.
#include "src/cache/prefix_cache.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace llm {
namespace {

constexpr int32_t kBlockSize = 4;

PrefixCache MakeCache(std::vector<int> windows) {
  PrefixCacheOptions options;
  options.block_size = kBlockSize;
  options.num_blocks.assign(windows.size(), 16);
  options.windows = std::move(windows);
  options.max_nodes = 16;
  return PrefixCache(options);
}

std::vector<int32_t> Counting(int32_t size) {
  std::vector<int32_t> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// Adds the path of `tokens`; node i gets block i in every group. Returns the nodes.
std::vector<PrefixNodeId> AddPath(PrefixCache* cache, PrefixNodeId root,
                                  const std::vector<int32_t>& tokens) {
  std::vector<PrefixNodeId> nodes;
  PrefixNodeId node = root;
  for (size_t i = 0; i < tokens.size() / kBlockSize; ++i) {
    node = cache->AddChild(node, absl::MakeConstSpan(tokens).subspan(i * kBlockSize, kBlockSize));
    nodes.push_back(node);
    for (int g = 0; g < 2; ++g) cache->Attach(node, g, static_cast<BlockId>(i));
  }
  return nodes;
}

TEST(PrefixCacheTest, KeepsSaltsAndAdaptersApart) {
  PrefixCache cache = MakeCache({0});
  const PrefixNodeId root = cache.AddRoot("a", 1);
  cache.Pin(root);
  EXPECT_EQ(cache.FindRoot("a", 1), root);
  EXPECT_EQ(cache.FindRoot("a", 2), kNoPrefixNode);
  EXPECT_EQ(cache.FindRoot("", 1), kNoPrefixNode);
  EXPECT_EQ(cache.FindRoot(absl::string_view("a\0", 2), 1), kNoPrefixNode);
}

TEST(PrefixCacheTest, MatchesWholeBlocksUpToTheLimit) {
  PrefixCache cache = MakeCache({0, 0});
  const PrefixNodeId root = cache.AddRoot("", 0);
  const std::vector<int32_t> tokens = Counting(12);
  const auto nodes = AddPath(&cache, root, tokens);
  EXPECT_EQ(cache.Match(root, tokens, 12).node, nodes[2]);
  const PrefixMatch match = cache.Match(root, tokens, 11);
  EXPECT_EQ(match.node, nodes[1]);
  EXPECT_EQ(match.partial_node, nodes[2]);
  EXPECT_EQ(match.partial_tokens, 3);
}

TEST(PrefixCacheTest, MatchesNothingBehindAHoleInAFullGroup) {
  PrefixCache cache = MakeCache({0, 0});
  const PrefixNodeId root = cache.AddRoot("", 0);
  const std::vector<int32_t> tokens = Counting(12);
  const auto nodes = AddPath(&cache, root, tokens);
  cache.Detach(1, 1);
  const PrefixMatch match = cache.Match(root, tokens, 12);
  EXPECT_EQ(match.num_blocks, 1);
  EXPECT_EQ(match.partial_tokens, 0);
}

TEST(PrefixCacheTest, NeedsOnlyTheWindowInAWindowGroup) {
  PrefixCache cache = MakeCache({0, 6});
  const PrefixNodeId root = cache.AddRoot("", 0);
  const std::vector<int32_t> tokens = Counting(16);
  AddPath(&cache, root, tokens);
  cache.Detach(1, 0);
  EXPECT_EQ(cache.Match(root, tokens, 16).num_blocks, 4);
  EXPECT_EQ(cache.Match(root, tokens, 11).num_blocks, 0);  // at 8, tokens 2 and 3 are missing
  cache.Detach(1, 2);
  EXPECT_EQ(cache.Match(root, tokens, 16).num_blocks, 0);
}

TEST(PrefixCacheTest, PrefersTheChildThatSharesMost) {
  PrefixCache cache = MakeCache({0});
  const PrefixNodeId root = cache.AddRoot("", 0);
  const PrefixNodeId two = cache.AddChild(root, {1, 2, 9, 9});
  cache.Attach(two, 0, 0);
  const PrefixNodeId three = cache.AddChild(root, {1, 2, 3});
  cache.Attach(three, 0, 1);
  const PrefixNodeId one = cache.AddChild(root, {1, 8, 8, 8});
  cache.Attach(one, 0, 2);
  const PrefixMatch match = cache.Match(root, {1, 2, 3, 4, 5}, 4);
  EXPECT_EQ(match.partial_node, three);
  EXPECT_EQ(match.partial_tokens, 3);
}

TEST(PrefixCacheTest, DropsAPathWithItsLastUse) {
  PrefixCache cache = MakeCache({0, 0});
  const PrefixNodeId root = cache.AddRoot("salt", 0);
  const auto nodes = AddPath(&cache, root, Counting(12));
  EXPECT_EQ(cache.num_nodes(), 4);
  for (BlockId block : {0, 1}) {
    for (int g = 0; g < 2; ++g) cache.Detach(g, block);
  }
  EXPECT_EQ(cache.num_nodes(), 4);  // the last node still has blocks
  cache.Detach(0, 2);
  cache.Detach(1, 2);
  EXPECT_EQ(cache.num_nodes(), 0);
  EXPECT_EQ(cache.FindRoot("salt", 0), kNoPrefixNode);
}

}  // namespace
}  // namespace llm
