// Hands out the KV blocks of one group by id and takes them back; knows nothing of their contents.
//
// A block is free, held (num_refs > 0), or cached (num_refs == 0, but the prefix cache can find
// it). Cached blocks count as available: Allocate evicts the least recently released one when no
// free block is left. Every call takes constant time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/cache/block_table.h"

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
  // Says whether the prefix cache can find the block. A cached block that it cannot find becomes
  // free.
  void SetFindable(BlockId block, bool findable);

  BlockId oldest_cached() const {
    return cached_.head;
  }  // the next one to be evicted; kNullBlock: none
  int num_refs(BlockId block) const { return blocks_[Index(block)].num_refs; }
  bool findable(BlockId block) const { return blocks_[Index(block)].findable; }
  bool cached(BlockId block) const { return findable(block) && num_refs(block) == 0; }

  int num_blocks() const { return static_cast<int>(blocks_.size()); }
  int num_free() const { return free_.size; }
  int num_cached() const { return cached_.size; }
  int num_held() const { return num_blocks() - num_free() - num_cached(); }
  int num_available() const { return num_free() + num_cached(); }

  // INTERNAL unless each block is in exactly the list that its fields call for.
  absl::Status CheckInvariants() const;

 private:
  struct Block {
    int32_t num_refs = 0;
    bool findable = false;
    BlockId previous = kNullBlock;
    BlockId next = kNullBlock;
  };
  // Doubly linked through the blocks themselves.
  struct List {
    BlockId head = kNullBlock;
    BlockId tail = kNullBlock;
    int size = 0;
  };

  static size_t Index(BlockId block) { return static_cast<size_t>(block); }
  void PushBack(List* list, BlockId block);
  void Remove(List* list, BlockId block);

  std::vector<Block> blocks_;
  List free_;
  List cached_;  // least recently released first
};

}  // namespace llm
