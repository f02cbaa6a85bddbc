// The nodes: made, found by hash, named by blocks, and destroyed with their last use.
#include "src/cache/prefix_cache.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"

namespace llm {

PrefixCache::PrefixCache(const PrefixCacheOptions& options)
    : block_size_(options.block_size),
      windows_(options.windows),
      hash_key_{options.hash_key[0], options.hash_key[1]},
      nodes_(static_cast<size_t>(options.max_nodes)),
      tokens_(nodes_.size() * static_cast<size_t>(options.block_size)),
      blocks_(nodes_.size() * options.windows.size(), kNullBlock),
      // Twice as many buckets as nodes keeps most chains at one node.
      buckets_(std::bit_ceil(2 * nodes_.size() + 1), kNoPrefixNode) {
  for (int blocks : options.num_blocks) {
    node_of_block_.emplace_back(static_cast<size_t>(blocks), kNoPrefixNode);
  }
  for (PrefixNodeId node = options.max_nodes - 1; node >= 0; --node) {
    nodes_[Index(node)].next_in_bucket = free_node_;
    free_node_ = node;
  }
}

absl::Span<const int32_t> PrefixCache::Tokens(PrefixNodeId node) const {
  return absl::MakeConstSpan(tokens_).subspan(Index(node) * static_cast<size_t>(block_size_),
                                              static_cast<size_t>(nodes_[Index(node)].num_tokens));
}

bool PrefixCache::HasAllBlocks(PrefixNodeId node) const {
  for (size_t g = 0; g < windows_.size(); ++g) {
    if (block(node, static_cast<int>(g)) == kNullBlock) return false;
  }
  return true;
}

// The salt goes in with its length, so that no salt and adapter can be read as another pair.
Hash128 PrefixCache::RootKey(absl::string_view salt, uint64_t adapter_id) const {
  SipHasher hasher(hash_key_[0], hash_key_[1]);
  hasher.UpdateU64(salt.size());
  hasher.Update(salt.data(), salt.size());
  hasher.UpdateU64(adapter_id);
  return hasher.Finish();
}

PrefixNodeId PrefixCache::FindRoot(absl::string_view salt, uint64_t adapter_id) const {
  const Hash128 key = RootKey(salt, adapter_id);
  PrefixNodeId node = buckets_[Bucket(key)];
  for (; node != kNoPrefixNode; node = nodes_[Index(node)].next_in_bucket) {
    const Node& entry = nodes_[Index(node)];
    if (!(entry.key == key) || entry.num_tokens != 0) continue;
    const auto root = roots_.find(node);
    if (root->second.salt == salt && root->second.adapter_id == adapter_id) return node;
  }
  return kNoPrefixNode;
}

PrefixNodeId PrefixCache::FindChild(PrefixNodeId parent, absl::Span<const int32_t> tokens) const {
  LLM_DCHECK(tokens.size() == static_cast<size_t>(block_size_));
  const Hash128 key = ChildKey(parent, tokens);
  PrefixNodeId node = buckets_[Bucket(key)];
  for (; node != kNoPrefixNode; node = nodes_[Index(node)].next_in_bucket) {
    const Node& entry = nodes_[Index(node)];
    if (entry.key == key && entry.parent == parent && Tokens(node) == tokens) return node;
  }
  return kNoPrefixNode;
}

PrefixNodeId PrefixCache::NewNode(const Hash128& key, PrefixNodeId parent, int32_t num_tokens) {
  LLM_DCHECK(has_free_node());
  const PrefixNodeId node = free_node_;
  Node& entry = nodes_[Index(node)];
  free_node_ = entry.next_in_bucket;
  entry = Node();
  entry.key = key;
  entry.parent = parent;
  entry.num_tokens = num_tokens;
  if (InBuckets(entry)) {
    entry.next_in_bucket = buckets_[Bucket(key)];
    buckets_[Bucket(key)] = node;
  }
  ++num_nodes_;
  return node;
}

PrefixNodeId PrefixCache::AddRoot(absl::string_view salt, uint64_t adapter_id) {
  // What can fail comes first.
  roots_.emplace(free_node_, RootIdentity{std::string(salt), adapter_id});
  return NewNode(RootKey(salt, adapter_id), kNoPrefixNode, 0);
}

PrefixNodeId PrefixCache::AddChild(PrefixNodeId parent, absl::Span<const int32_t> tokens) {
  LLM_DCHECK(!tokens.empty() && tokens.size() <= static_cast<size_t>(block_size_));
  const PrefixNodeId node =
      NewNode(ChildKey(parent, tokens), parent, static_cast<int32_t>(tokens.size()));
  std::copy(
      tokens.begin(), tokens.end(),
      tokens_.begin() + static_cast<ptrdiff_t>(Index(node) * static_cast<size_t>(block_size_)));
  Node& entry = nodes_[Index(node)];
  Node& above = nodes_[Index(parent)];
  entry.depth = above.depth + 1;
  entry.older_sibling = above.newest_child;
  if (above.newest_child != kNoPrefixNode) nodes_[Index(above.newest_child)].newer_sibling = node;
  above.newest_child = node;
  ++above.num_uses;
  return node;
}

void PrefixCache::Attach(PrefixNodeId node, int group, BlockId block) {
  LLM_DCHECK(blocks_[BlockIndex(node, group)] == kNullBlock);
  LLM_DCHECK(node_of_block(group, block) == kNoPrefixNode);
  blocks_[BlockIndex(node, group)] = block;
  node_of_block_[static_cast<size_t>(group)][static_cast<size_t>(block)] = node;
  ++nodes_[Index(node)].num_uses;
}

void PrefixCache::Detach(int group, BlockId block) {
  PrefixNodeId& owner = node_of_block_[static_cast<size_t>(group)][static_cast<size_t>(block)];
  const PrefixNodeId node = owner;
  if (node == kNoPrefixNode) return;
  owner = kNoPrefixNode;
  blocks_[BlockIndex(node, group)] = kNullBlock;
  DropUse(node);
}

// A loop, not recursion: a path can be as long as a context has blocks.
void PrefixCache::DropUse(PrefixNodeId node) {
  while (node != kNoPrefixNode) {
    LLM_DCHECK(nodes_[Index(node)].num_uses > 0);
    if (--nodes_[Index(node)].num_uses > 0) return;
    const PrefixNodeId above = nodes_[Index(node)].parent;
    Destroy(node);
    node = above;
  }
}

void PrefixCache::Destroy(PrefixNodeId node) {
  Node& entry = nodes_[Index(node)];
  if (InBuckets(entry)) {
    PrefixNodeId* link = &buckets_[Bucket(entry.key)];
    while (*link != node) link = &nodes_[Index(*link)].next_in_bucket;
    *link = entry.next_in_bucket;
  }
  if (entry.num_tokens == 0) roots_.erase(node);
  if (entry.newer_sibling != kNoPrefixNode) {
    nodes_[Index(entry.newer_sibling)].older_sibling = entry.older_sibling;
  } else if (entry.parent != kNoPrefixNode) {
    nodes_[Index(entry.parent)].newest_child = entry.older_sibling;
  }
  if (entry.older_sibling != kNoPrefixNode) {
    nodes_[Index(entry.older_sibling)].newer_sibling = entry.newer_sibling;
  }
  entry = Node();
  entry.next_in_bucket = free_node_;
  free_node_ = node;
  --num_nodes_;
}

absl::Status PrefixCache::CheckInvariants() const {
  for (size_t g = 0; g < node_of_block_.size(); ++g) {
    for (size_t b = 0; b < node_of_block_[g].size(); ++b) {
      const PrefixNodeId node = node_of_block_[g][b];
      if (node == kNoPrefixNode) continue;
      if (block(node, static_cast<int>(g)) != static_cast<BlockId>(b)) {
        return absl::InternalError(absl::StrCat("group ", g, ": block ", b, " names node ", node,
                                                ", which names block ",
                                                block(node, static_cast<int>(g))));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace llm
