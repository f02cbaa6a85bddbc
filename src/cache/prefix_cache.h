// Finds the blocks that hold the keys and values of a token prefix: a tree with one node for each
// block's worth of tokens.
//
// A node stands for the whole path from its root, and names one block per KV group, or none where
// it was evicted. Roots stand for (salt, adapter): prefixes of different roots never meet. Nodes
// are found by a 128-bit keyed hash chained from their parent, and then their tokens and parent are
// compared, so that a collision costs time and never a wrong block. A node lives while it has uses:
// blocks, children, pins. Its memory is all allocated at the start.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/base/siphash.h"
#include "src/cache/block_table.h"
#include "src/cache/spill_index.h"

namespace llm {

using PrefixNodeId = int32_t;
inline constexpr PrefixNodeId kNoPrefixNode = -1;

struct PrefixCacheOptions {
  int32_t block_size = 16;
  std::vector<int> windows;     // [groups], 0: full
  std::vector<int> num_blocks;  // [groups]
  int32_t max_nodes = 0;
  uint64_t hash_key[2] = {0, 0};
};

struct PrefixMatch {
  PrefixNodeId node = kNoPrefixNode;  // covers num_blocks whole blocks; a root when 0
  int32_t num_blocks = 0;
  PrefixNodeId partial_node =
      kNoPrefixNode;           // a child of `node` whose first partial_tokens tokens match too
  int32_t partial_tokens = 0;  // < block_size
};

class PrefixCache {
 public:
  explicit PrefixCache(const PrefixCacheOptions& options);

  // kNoPrefixNode when absent.
  PrefixNodeId FindRoot(absl::string_view salt, uint64_t adapter_id) const;
  PrefixNodeId FindChild(PrefixNodeId parent, absl::Span<const int32_t> tokens) const;
  // REQUIRES: absent, and has_free_node(). A new node has no uses: pin it or attach a block before
  // anything else.
  PrefixNodeId AddRoot(absl::string_view salt, uint64_t adapter_id);
  // Fewer tokens than block_size make a partial node: it has no children, and only BestPartialChild
  // finds it.
  PrefixNodeId AddChild(PrefixNodeId parent, absl::Span<const int32_t> tokens);
  bool has_free_node() const { return free_node_ != kNoPrefixNode; }

  // The longest match of at most max_tokens tokens that every group can serve: each block below it
  // in full groups, those that cover the last `window` tokens in window groups.
  PrefixMatch Match(PrefixNodeId root, absl::Span<const int32_t> tokens, int32_t max_tokens) const;
  // The child that shares the most leading tokens with `tokens` (at most block_size - 1 count) and
  // has a block in every group. Looks at the newest children only, up to a fixed number. Returns
  // how many tokens it shares; 0: none.
  int32_t BestPartialChild(PrefixNodeId parent, absl::Span<const int32_t> tokens,
                           PrefixNodeId* child) const;

  void Pin(PrefixNodeId node) { ++nodes_[Index(node)].num_uses; }
  void Unpin(PrefixNodeId node) { DropUse(node); }
  // Names the node's block of one group. REQUIRES: it has none there, and the block belongs to no
  // node.
  void Attach(PrefixNodeId node, int group, BlockId block);
  // Forgets the block, and with it nodes that lost their last use.
  void Detach(int group, BlockId block);

  BlockId block(PrefixNodeId node, int group) const { return blocks_[BlockIndex(node, group)]; }
  PrefixNodeId node_of_block(int group, BlockId block) const {
    return node_of_block_[static_cast<size_t>(group)][static_cast<size_t>(block)];
  }
  PrefixNodeId parent(PrefixNodeId node) const { return nodes_[Index(node)].parent; }
  int32_t depth(PrefixNodeId node) const {
    return nodes_[Index(node)].depth;
  }  // blocks; a root has 0
  int32_t num_nodes() const { return num_nodes_; }

  // prefix_place.cc: the keys of nodes, also of absent ones. IdOf REQUIRES a node that is no root.
  Hash128 RootKey(absl::string_view salt, uint64_t adapter_id) const;
  Hash128 ChainKey(const Hash128& parent, absl::Span<const int32_t> tokens) const;
  PrefixBlockId IdOf(PrefixNodeId node, int group) const;

  // INTERNAL unless blocks and nodes name each other.
  absl::Status CheckInvariants() const;

 private:
  struct Node {
    Hash128 key;
    PrefixNodeId parent = kNoPrefixNode;
    PrefixNodeId newest_child = kNoPrefixNode;
    PrefixNodeId older_sibling = kNoPrefixNode;
    PrefixNodeId newer_sibling = kNoPrefixNode;
    PrefixNodeId next_in_bucket = kNoPrefixNode;  // of free nodes: the next free one
    int32_t num_tokens = 0;                       // 0: a root
    int32_t depth = 0;
    int32_t num_uses = 0;
  };
  struct RootIdentity {
    std::string salt;
    uint64_t adapter_id = 0;
  };

  static size_t Index(PrefixNodeId node) { return static_cast<size_t>(node); }
  size_t BlockIndex(PrefixNodeId node, int group) const {
    return Index(node) * windows_.size() + static_cast<size_t>(group);
  }
  absl::Span<const int32_t> Tokens(PrefixNodeId node) const;
  bool InBuckets(const Node& node) const {
    return node.num_tokens == 0 || node.num_tokens == block_size_;
  }
  bool HasAllBlocks(PrefixNodeId node) const;
  Hash128 ChildKey(PrefixNodeId parent, absl::Span<const int32_t> tokens) const {
    return ChainKey(nodes_[Index(parent)].key, tokens);
  }
  size_t Bucket(const Hash128& key) const { return key.low & (buckets_.size() - 1); }
  PrefixNodeId NewNode(const Hash128& key, PrefixNodeId parent, int32_t num_tokens);
  void DropUse(PrefixNodeId node);
  void Destroy(PrefixNodeId node);

  const int32_t block_size_;
  const std::vector<int> windows_;
  const uint64_t hash_key_[2];
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;  // [max_nodes, block_size]
  std::vector<BlockId> blocks_;  // [max_nodes, groups]
  std::vector<PrefixNodeId> buckets_;
  std::vector<std::vector<PrefixNodeId>> node_of_block_;  // [groups][num_blocks]
  std::map<PrefixNodeId, RootIdentity> roots_;
  PrefixNodeId free_node_ = kNoPrefixNode;
  int32_t num_nodes_ = 0;
};

}  // namespace llm
