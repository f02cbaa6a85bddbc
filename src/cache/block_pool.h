// Hands out the KV blocks of one group by id and takes them back; knows nothing of their contents.
//
// A block is free, held (num_refs > 0), or cached (num_refs == 0, but the prefix cache can find
// it). Cached blocks count as available: Allocate evicts the first one in the eviction order (least
// recently released, shifted by hints) when no free block is left.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/cache/block_table.h"
#include "src/cache/eviction_order.h"

namespace llm {

class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  struct Allocation {
    BlockId block = kNullBlock;  // held once; kNullBlock when nothing is free or evictable
    bool evicted = false;        // it was cached until now: the prefix cache must forget it
  };
  Allocation Allocate();

  void AddRef(BlockId block);  // free blocks cannot be taken this way
  // The last reference makes a findable block cached, the most recent one, and any other block
  // free.
  void Release(BlockId block);
  // The same for a holder that used the block's contents: one of the session, 0: of none. A block
  // belongs to the session of its only users; hints hold for such blocks alone.
  void Release(BlockId block, uint64_t session_id);
  // A reference that is also counted as a pin. Unpin leaves the block to whom it belonged.
  void Pin(BlockId block);
  void Unpin(BlockId block);
  // Of the session's cached blocks; see EvictionOrder.
  void Hint(uint64_t session_id, SessionHint hint) { cached_.Hint(session_id, hint); }
  // Says whether the prefix cache can find the block. A cached block that it cannot find becomes
  // free.
  void SetFindable(BlockId block, bool findable);

  BlockId next_evicted() const { return cached_.next(); }  // kNullBlock: none
  int num_pins(BlockId block) const { return blocks_[Index(block)].num_pins; }
  int num_refs(BlockId block) const { return blocks_[Index(block)].num_refs; }
  bool findable(BlockId block) const { return blocks_[Index(block)].findable; }
  bool cached(BlockId block) const { return findable(block) && num_refs(block) == 0; }

  int num_blocks() const { return static_cast<int>(blocks_.size()); }
  int num_free() const { return num_free_; }
  int num_cached() const { return cached_.size(); }
  int num_held() const { return num_blocks() - num_free() - num_cached(); }
  int num_pinned() const { return num_pinned_; }  // blocks, all of them held
  int num_available() const { return num_free() + num_cached(); }

  // INTERNAL unless each block is free, held or cached exactly as its fields call for.
  absl::Status CheckInvariants() const;

 private:
  struct Block {
    int32_t num_refs = 0;
    int32_t num_pins = 0;  // of the references
    bool findable = false;
    bool used = false;          // since it was allocated, by some holder that has released it
    uint64_t session_id = 0;    // of all those users; 0: they differ, or had none
    BlockId next = kNullBlock;  // of free blocks
  };

  static size_t Index(BlockId block) { return static_cast<size_t>(block); }
  void PushFree(BlockId block);
  BlockId PopFree();

  std::vector<Block> blocks_;
  BlockId first_free_ = kNullBlock;
  BlockId last_free_ = kNullBlock;
  int num_free_ = 0;
  int num_pinned_ = 0;
  EvictionOrder cached_;
};

}  // namespace llm
