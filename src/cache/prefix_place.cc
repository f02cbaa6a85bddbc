// Keys of prefixes that need not be in the tree, and of blocks that leave it.
#include "src/cache/block_manager.h"

namespace llm {

Hash128 PrefixCache::ChainKey(const Hash128& parent, absl::Span<const int32_t> tokens) const {
  SipHasher hasher(hash_key_[0], hash_key_[1]);
  hasher.UpdateU64(parent.low);
  hasher.UpdateU64(parent.high);
  hasher.Update(tokens.data(), tokens.size() * sizeof(int32_t));
  return hasher.Finish();
}

PrefixBlockId PrefixCache::IdOf(PrefixNodeId node, int group) const {
  const Node& entry = nodes_[Index(node)];
  return {.key = entry.key,
          .parent_key = nodes_[Index(entry.parent)].key,
          .tokens = Tokens(node),
          .group = group};
}

PrefixPlace BlockManager::Place(absl::string_view salt, uint64_t adapter_id,
                                absl::Span<const int32_t> tokens) const {
  PrefixPlace place;
  if (!prefix_cache_enabled()) return place;
  const auto size = static_cast<size_t>(block_size());
  place.keys.reserve(tokens.size() / size);
  place.root = prefix_->RootKey(salt, adapter_id);
  Hash128 key = place.root;
  for (size_t begin = 0; begin + size <= tokens.size(); begin += size) {
    key = prefix_->ChainKey(key, tokens.subspan(begin, size));
    place.keys.push_back(key);
  }
  place.cached_blocks =
      Match(salt, adapter_id, tokens, static_cast<int32_t>(tokens.size())).num_blocks;
  return place;
}

// Tells of a block before the tree forgets it.
void BlockManager::TellEviction(int group, BlockId block) {
  if (listener_ == nullptr) return;
  const PrefixNodeId node = prefix_->node_of_block(group, block);
  if (node == kNoPrefixNode) return;
  const PrefixBlockId id = prefix_->IdOf(node, group);
  if (id.tokens.size() == static_cast<size_t>(block_size())) listener_->OnEvict(id, block);
}

}  // namespace llm
