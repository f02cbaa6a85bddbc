// The block pools of all KV groups and the prefix cache over them: what a sequence's block tables
// are filled from.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/cache/block_pool.h"
#include "src/cache/block_table.h"
#include "src/cache/eviction_listener.h"
#include "src/cache/kv_groups.h"
#include "src/cache/prefix_cache.h"

namespace llm {

struct BlockManagerOptions {
  int32_t block_size = 16;
  std::vector<KvGroupSpec> groups;
  std::vector<int> num_blocks;  // [groups], each > 0
  int32_t max_context_tokens = 0;
  bool prefix_cache = true;
  uint64_t hash_key[2] = {0, 0};
};

class BlockManager {
 public:
  explicit BlockManager(const BlockManagerOptions& options);

  int num_groups() const { return static_cast<int>(pools_.size()); }
  int32_t block_size() const { return options_.block_size; }
  int window(int group) const { return options_.groups[static_cast<size_t>(group)].window; }
  const BlockPool& pool(int group) const { return pools_[static_cast<size_t>(group)]; }
  bool prefix_cache_enabled() const { return prefix_.has_value(); }

  // A block that its one holder may write. Evicts cached ones; kNullBlock when there is none of
  // those either.
  BlockId Allocate(int group);
  void AddRef(int group, BlockId block) { mutable_pool(group)->AddRef(block); }
  void Release(int group, BlockId block) { mutable_pool(group)->Release(block); }

  PrefixMatch Match(absl::string_view salt, uint64_t adapter_id, absl::Span<const int32_t> tokens,
                    int32_t max_tokens) const;
  // The whole blocks of the match that a sequence would hold, [groups].
  struct MatchUse {
    int32_t blocks = 0;
    int32_t unheld =
        0;  // of these, how many are only cached, and so leave the available ones when taken
  };
  std::vector<MatchUse> Use(const PrefixMatch& match) const;
  // Appends the match's whole blocks to empty tables, one reference each; kNullBlock where the
  // window has passed.
  void TakeBlocks(const PrefixMatch& match, std::vector<BlockTable>* tables);

  // Pins a sequence's place in the prefix tree: `node`, or the root of (salt, adapter), made when
  // absent. kNoPrefixNode when no node can be had: the sequence then publishes nothing.
  PrefixNodeId Enter(PrefixNodeId node, absl::string_view salt, uint64_t adapter_id);
  void Leave(PrefixNodeId node);
  // Makes the blocks of tokens [0, num_computed) findable, from `node` (whose path is published)
  // on. Returns the new place, pinned in exchange for the old one. Where another block already
  // stands for the same tokens, the sequence's stays its own.
  PrefixNodeId Publish(PrefixNodeId node, absl::Span<const int32_t> tokens, int32_t num_computed,
                       const std::vector<BlockTable>& tables);
  // Gives back all blocks, tails first, so that they are evicted before heads; whole and partly
  // filled ones that hold computed tokens stay findable when `node` is the sequence's place. Clears
  // the tables; `node` stays pinned. Earlier hints about the session (0: none) end. Returns how
  // many of the computed tokens stay findable.
  int32_t ReleaseAll(PrefixNodeId node, absl::Span<const int32_t> tokens, int32_t num_computed,
                     uint64_t session_id, std::vector<BlockTable>* tables);
  // Gives back the blocks of [0, num_computed) that no later query reads. They stay findable.
  void ReleaseBehindWindows(int32_t num_computed, uint64_t session_id,
                            std::vector<BlockTable>* tables);
  // Orders the eviction of the cached blocks that only this session has used.
  void Hint(uint64_t session_id, SessionHint hint);

  // Holds the whole blocks that a match of the path to `node` takes, for good. `tables` are those
  // of the sequence that computed the path. RESOURCE_EXHAUSTED, and nothing is held, when more than
  // max_pinned[g] blocks of a group would be.
  absl::Status Pin(PrefixNodeId node, const std::vector<BlockTable>& tables,
                   absl::Span<const int64_t> max_pinned);
  void Unpin(PrefixNodeId node);
  // One for each block that Pin(node) holds; refs are [groups][blocks].
  void CountPin(PrefixNodeId node, std::vector<std::vector<int>>* refs) const;
  int32_t NumTokens(PrefixNodeId node) const { return prefix_->depth(node) * block_size(); }

  // prefix_place.cc. The listener (null: none) outlives the manager; a flush tells it nothing.
  void set_eviction_listener(EvictionListener* listener) { listener_ = listener; }
  PrefixPlace Place(absl::string_view salt, uint64_t adapter_id,
                    absl::Span<const int32_t> tokens) const;

  BlockId PrefixBlock(PrefixNodeId node, int group) const { return prefix_->block(node, group); }
  // Drops every cached block that nothing holds.
  void Flush();
  uint64_t num_evicted() const { return num_evicted_; }

  // INTERNAL unless pools and prefix cache agree and block b of group g is referenced
  // expected_refs[g][b] times.
  absl::Status CheckInvariants(const std::vector<std::vector<int>>& expected_refs) const;

 private:
  BlockPool* mutable_pool(int group) { return &pools_[static_cast<size_t>(group)]; }
  // Calls visit(group, block) for each block that a match of the path takes, tail first.
  template <typename Visit>
  void ForEachNeeded(PrefixNodeId node, Visit visit) const;
  bool EvictNext(int group, bool tell);
  void TellEviction(int group, BlockId block);
  bool EnsureFreeNode();
  void Attach(PrefixNodeId node, int group, BlockId block);
  void PublishMissing(PrefixNodeId node, const std::vector<BlockTable>& tables);
  // Returns how many tokens of a partly filled block are published now.
  int32_t PublishPartial(PrefixNodeId node, absl::Span<const int32_t> tokens, int32_t num_computed,
                         const std::vector<BlockTable>& tables);

  const BlockManagerOptions options_;
  std::vector<BlockPool> pools_;
  std::optional<PrefixCache> prefix_;
  EvictionListener* listener_ = nullptr;
  uint64_t num_evicted_ = 0;
};

}  // namespace llm
