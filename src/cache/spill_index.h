// Which evicted blocks a second tier holds, and where: one slot a block, the least recently used
// one is given to the next. Knows nothing of their contents.
//
// A block is found by the chained key of its prefix (PrefixCache), its parent's key, its tokens and
// its group: all are compared, so that no collision hands out another prompt's state.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/base/siphash.h"

namespace llm {

// A whole block of tokens of one KV group.
struct PrefixBlockId {
  Hash128 key;
  Hash128 parent_key;
  absl::Span<const int32_t> tokens;  // [block_size]
  int group = 0;
};

// Constant time. Allocates only when made.
class SpillIndex {
 public:
  using Slot = int32_t;
  static constexpr Slot kNoSlot = -1;

  SpillIndex(int32_t num_slots, int32_t block_size);
  // Memory for each slot.
  static int64_t BytesOfSlot(int32_t block_size);

  Slot Find(const PrefixBlockId& id) const;
  void Touch(Slot slot);   // most recently used
  void Demote(Slot slot);  // least recently used
  // REQUIRES: absent. Forgets the least recently used one when no slot is free.
  Slot Add(const PrefixBlockId& id, uint64_t checksum);
  void Remove(Slot slot);
  void Clear();

  uint64_t checksum(Slot slot) const { return entries_[Index(slot)].checksum; }
  int32_t size() const { return size_; }
  int32_t num_slots() const { return static_cast<int32_t>(entries_.size()); }

 private:
  struct Entry {
    Hash128 key;
    Hash128 parent_key;
    uint64_t checksum = 0;
    int32_t group = 0;
    Slot newer = kNoSlot;  // of free ones: the next free one
    Slot older = kNoSlot;
    Slot next_in_bucket = kNoSlot;
  };

  static size_t Index(Slot slot) { return static_cast<size_t>(slot); }
  size_t Bucket(const Hash128& key, int group) const {
    return (key.low + static_cast<uint64_t>(group)) & (buckets_.size() - 1);
  }
  absl::Span<const int32_t> Tokens(Slot slot) const;
  void Link(Slot slot);
  void Unlink(Slot slot);

  const size_t block_size_;
  std::vector<Entry> entries_;
  std::vector<int32_t> tokens_;  // [num_slots, block_size]
  std::vector<Slot> buckets_;
  Slot newest_ = kNoSlot;
  Slot oldest_ = kNoSlot;
  Slot free_ = kNoSlot;
  int32_t size_ = 0;
};

}  // namespace llm
