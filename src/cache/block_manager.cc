// Keeps pools and prefix tree in step: a block is findable in its pool exactly while a node names
// it.
#include "src/cache/block_manager.h"

#include <algorithm>

#include "src/base/dcheck.h"
#include "src/base/math.h"
#include "src/cache/window.h"

namespace llm {
namespace {

// With a full group every useful node has a block there, and a quarter more is room for roots and
// for nodes that lost their block before their children did. Without one, paths of evicted blocks
// lead to the last window: several contexts of them.
int32_t MaxNodes(const BlockManagerOptions& options) {
  int64_t nodes = 0;
  bool has_full_group = false;
  for (size_t g = 0; g < options.groups.size(); ++g) {
    nodes = std::max<int64_t>(nodes, options.num_blocks[g]);
    has_full_group |= options.groups[g].window == 0;
  }
  nodes += nodes / 4 + 64;
  if (!has_full_group)
    nodes += 4 * CeilDiv<int64_t>(options.max_context_tokens, options.block_size);
  return static_cast<int32_t>(std::min<int64_t>(nodes, INT32_MAX / 4));
}

}  // namespace

BlockManager::BlockManager(const BlockManagerOptions& options) : options_(options) {
  for (int blocks : options.num_blocks) pools_.emplace_back(blocks);
  if (!options.prefix_cache) return;
  PrefixCacheOptions prefix;
  prefix.block_size = options.block_size;
  for (const KvGroupSpec& group : options.groups) prefix.windows.push_back(group.window);
  prefix.num_blocks = options.num_blocks;
  prefix.max_nodes = MaxNodes(options);
  prefix.hash_key[0] = options.hash_key[0];
  prefix.hash_key[1] = options.hash_key[1];
  prefix_.emplace(prefix);
}

BlockId BlockManager::Allocate(int group) {
  const BlockPool::Allocation allocation = mutable_pool(group)->Allocate();
  if (allocation.evicted) {
    TellEviction(group, allocation.block);
    prefix_->Detach(group, allocation.block);
    ++num_evicted_;
  }
  return allocation.block;
}

bool BlockManager::EvictNext(int group, bool tell) {
  const BlockId block = pool(group).next_evicted();
  if (block == kNullBlock) return false;
  if (tell) TellEviction(group, block);
  mutable_pool(group)->SetFindable(block, false);
  prefix_->Detach(group, block);
  ++num_evicted_;
  return true;
}

bool BlockManager::EnsureFreeNode() {
  for (int group = 0; group < num_groups(); ++group) {
    while (!prefix_->has_free_node() && EvictNext(group, /*tell=*/true)) {
    }
  }
  return prefix_->has_free_node();
}

void BlockManager::Flush() {
  for (int group = 0; group < num_groups(); ++group) {
    while (EvictNext(group, /*tell=*/false)) {
    }
  }
}

PrefixMatch BlockManager::Match(absl::string_view salt, uint64_t adapter_id,
                                absl::Span<const int32_t> tokens, int32_t max_tokens) const {
  if (!prefix_cache_enabled() || max_tokens < 1) return PrefixMatch();
  return prefix_->Match(prefix_->FindRoot(salt, adapter_id), tokens, max_tokens);
}

std::vector<BlockManager::MatchUse> BlockManager::Use(const PrefixMatch& match) const {
  std::vector<MatchUse> use(pools_.size());
  const int32_t num_tokens = match.num_blocks * block_size() + match.partial_tokens;
  PrefixNodeId node = match.node;
  for (int32_t i = match.num_blocks - 1; i >= 0; --i, node = prefix_->parent(node)) {
    for (int g = 0; g < num_groups(); ++g) {
      if (i < FirstNeededBlock(num_tokens, window(g), block_size())) continue;
      MatchUse& group_use = use[static_cast<size_t>(g)];
      ++group_use.blocks;
      if (pool(g).cached(prefix_->block(node, g))) ++group_use.unheld;
    }
  }
  return use;
}

void BlockManager::TakeBlocks(const PrefixMatch& match, std::vector<BlockTable>* tables) {
  const int32_t num_tokens = match.num_blocks * block_size() + match.partial_tokens;
  for (BlockTable& table : *tables) {
    LLM_DCHECK(table.empty());
    table.assign(static_cast<size_t>(match.num_blocks), kNullBlock);
  }
  PrefixNodeId node = match.node;
  for (int32_t i = match.num_blocks - 1; i >= 0; --i, node = prefix_->parent(node)) {
    for (int g = 0; g < num_groups(); ++g) {
      if (i < FirstNeededBlock(num_tokens, window(g), block_size())) continue;
      const BlockId block = prefix_->block(node, g);
      AddRef(g, block);
      (*tables)[static_cast<size_t>(g)][static_cast<size_t>(i)] = block;
    }
  }
}

PrefixNodeId BlockManager::Enter(PrefixNodeId node, absl::string_view salt, uint64_t adapter_id) {
  if (!prefix_cache_enabled()) return kNoPrefixNode;
  if (node == kNoPrefixNode) node = prefix_->FindRoot(salt, adapter_id);
  if (node == kNoPrefixNode) {
    if (!EnsureFreeNode()) return kNoPrefixNode;
    node = prefix_->AddRoot(salt, adapter_id);
  }
  prefix_->Pin(node);
  return node;
}

void BlockManager::Leave(PrefixNodeId node) {
  if (node != kNoPrefixNode) prefix_->Unpin(node);
}

void BlockManager::Attach(PrefixNodeId node, int group, BlockId block) {
  if (block == kNullBlock || pool(group).findable(block)) return;
  if (prefix_->block(node, group) != kNullBlock) return;
  prefix_->Attach(node, group, block);
  mutable_pool(group)->SetFindable(block, true);
}

PrefixNodeId BlockManager::Publish(PrefixNodeId node, absl::Span<const int32_t> tokens,
                                   int32_t num_computed, const std::vector<BlockTable>& tables) {
  if (node == kNoPrefixNode) return node;
  const int32_t num_full = num_computed / block_size();
  for (int32_t i = prefix_->depth(node); i < num_full; ++i) {
    const absl::Span<const int32_t> block_tokens =
        tokens.subspan(static_cast<size_t>(i) * static_cast<size_t>(block_size()),
                       static_cast<size_t>(block_size()));
    PrefixNodeId child = prefix_->FindChild(node, block_tokens);
    if (child == kNoPrefixNode) {
      if (!EnsureFreeNode()) return node;
      child = prefix_->AddChild(node, block_tokens);
    }
    prefix_->Pin(child);
    for (int g = 0; g < num_groups(); ++g) {
      Attach(child, g, tables[static_cast<size_t>(g)][static_cast<size_t>(i)]);
    }
    prefix_->Unpin(node);
    node = child;
  }
  return node;
}

// Blocks of the path that were evicted since another sequence published them, while this one kept
// its own.
void BlockManager::PublishMissing(PrefixNodeId node, const std::vector<BlockTable>& tables) {
  for (int32_t i = prefix_->depth(node) - 1; i >= 0; --i, node = prefix_->parent(node)) {
    for (int g = 0; g < num_groups(); ++g) {
      Attach(node, g, tables[static_cast<size_t>(g)][static_cast<size_t>(i)]);
    }
  }
}

int32_t BlockManager::PublishPartial(PrefixNodeId node, absl::Span<const int32_t> tokens,
                                     int32_t num_computed, const std::vector<BlockTable>& tables) {
  const int32_t begin = prefix_->depth(node) * block_size();
  const int32_t length = num_computed - begin;
  if (length < 1 || length >= block_size()) return 0;
  const absl::Span<const int32_t> rest =
      tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(length));
  PrefixNodeId known = kNoPrefixNode;
  if (prefix_->BestPartialChild(node, rest, &known) == length) return length;
  if (!EnsureFreeNode()) return 0;
  const PrefixNodeId child = prefix_->AddChild(node, rest);
  prefix_->Pin(child);
  for (int g = 0; g < num_groups(); ++g) {
    Attach(child, g, tables[static_cast<size_t>(g)][static_cast<size_t>(begin / block_size())]);
  }
  prefix_->Unpin(child);
  return length;
}

int32_t BlockManager::ReleaseAll(PrefixNodeId node, absl::Span<const int32_t> tokens,
                                 int32_t num_computed, uint64_t session_id,
                                 std::vector<BlockTable>* tables) {
  int32_t retained = 0;
  if (node != kNoPrefixNode) {
    PublishMissing(node, *tables);
    retained =
        prefix_->depth(node) * block_size() + PublishPartial(node, tokens, num_computed, *tables);
  }
  for (int g = 0; g < static_cast<int>(tables->size()); ++g) {
    BlockTable& table = (*tables)[static_cast<size_t>(g)];
    for (size_t i = table.size(); i-- > 0;) {
      if (table[i] != kNullBlock) mutable_pool(g)->Release(table[i], session_id);
    }
    table.clear();
  }
  Hint(session_id, SessionHint::kNone);
  return retained;
}

void BlockManager::Hint(uint64_t session_id, SessionHint hint) {
  for (BlockPool& pool : pools_) pool.Hint(session_id, hint);
}

void BlockManager::ReleaseBehindWindows(int32_t num_computed, uint64_t session_id,
                                        std::vector<BlockTable>* tables) {
  for (int g = 0; g < num_groups(); ++g) {
    BlockTable& table = (*tables)[static_cast<size_t>(g)];
    const int32_t first = FirstNeededBlock(num_computed, window(g), block_size());
    // Everything before the first null entry from the right was dropped by an earlier call.
    for (int32_t i = first - 1; i >= 0 && table[static_cast<size_t>(i)] != kNullBlock; --i) {
      mutable_pool(g)->Release(table[static_cast<size_t>(i)], session_id);
      table[static_cast<size_t>(i)] = kNullBlock;
    }
  }
}

}  // namespace llm
