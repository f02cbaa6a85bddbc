// The walk from a root along a sequence's tokens, and which stop on it serves every group.
#include <algorithm>

#include "src/cache/prefix_cache.h"
#include "src/cache/window.h"

namespace llm {
namespace {

// Siblings looked at for a partial match. A root can have thousands of children; the newest are the
// likeliest, and a match of less than one block is not worth more time.
constexpr int kMaxSiblings = 256;

}  // namespace

PrefixMatch PrefixCache::Match(PrefixNodeId root, absl::Span<const int32_t> tokens,
                               int32_t max_tokens) const {
  PrefixMatch best;
  if (root == kNoPrefixNode) return best;
  best.node = root;
  max_tokens = std::min(max_tokens, static_cast<int32_t>(tokens.size()));
  std::vector<int32_t> run(windows_.size(), 0);  // present blocks that end at the current node
  PrefixNodeId node = root;
  for (int32_t depth = 1; depth <= max_tokens / block_size_; ++depth) {
    node = FindChild(
        node, tokens.subspan(static_cast<size_t>(depth - 1) * static_cast<size_t>(block_size_),
                             static_cast<size_t>(block_size_)));
    if (node == kNoPrefixNode) break;
    bool full_groups = true;
    bool window_groups = true;
    for (size_t g = 0; g < windows_.size(); ++g) {
      run[g] = block(node, static_cast<int>(g)) == kNullBlock ? 0 : run[g] + 1;
      const int32_t first = FirstNeededBlock(depth * block_size_, windows_[g], block_size_);
      if (run[g] < depth - first) (windows_[g] == 0 ? full_groups : window_groups) = false;
    }
    if (!full_groups) break;
    if (!window_groups) continue;
    best.node = node;
    best.num_blocks = depth;
  }
  const int32_t matched = best.num_blocks * block_size_;
  best.partial_tokens = BestPartialChild(
      best.node,
      tokens.subspan(static_cast<size_t>(matched), static_cast<size_t>(max_tokens - matched)),
      &best.partial_node);
  return best;
}

int32_t PrefixCache::BestPartialChild(PrefixNodeId parent, absl::Span<const int32_t> tokens,
                                      PrefixNodeId* child) const {
  const size_t limit = std::min(tokens.size(), static_cast<size_t>(block_size_ - 1));
  size_t best = 0;
  PrefixNodeId node = nodes_[Index(parent)].newest_child;
  for (int i = 0; i < kMaxSiblings && node != kNoPrefixNode && best < limit; ++i) {
    const absl::Span<const int32_t> other = Tokens(node);
    size_t shared = 0;
    while (shared < std::min(limit, other.size()) && other[shared] == tokens[shared]) ++shared;
    if (shared > best && HasAllBlocks(node)) {
      best = shared;
      *child = node;
    }
    node = nodes_[Index(node)].older_sibling;
  }
  return static_cast<int32_t>(best);
}

}  // namespace llm
