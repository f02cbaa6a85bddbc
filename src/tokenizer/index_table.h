// A hash table that holds only indices; the caller keeps the keys and compares them.
#pragma once

#include <cstdint>
#include <vector>

namespace llm {

// Four bytes a slot and two thirds full: a vocabulary of 262,144 tokens costs 1.5 MiB where a map
// of strings costs 20.
class IndexTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // REQUIRES: num_entries < 2^30.
  explicit IndexTable(size_t num_entries) : slots_(num_entries + num_entries / 2 + 1, kNone) {}

  // The index for which equals(index) holds among those inserted with `hash`, or kNone.
  template <typename Equals>
  uint32_t Find(uint64_t hash, Equals equals) const {
    for (size_t slot = FirstSlot(hash);; slot = NextSlot(slot)) {
      const uint32_t index = slots_[slot];
      if (index == kNone || equals(index)) return index;
    }
  }

  // Brings the slot where a search for `hash` begins nearer.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[FirstSlot(hash)], 1); }

  // REQUIRES: fewer than num_entries calls so far, so that an empty slot is always left.
  void Insert(uint64_t hash, uint32_t index) {
    size_t slot = FirstSlot(hash);
    while (slots_[slot] != kNone) slot = NextSlot(slot);
    slots_[slot] = index;
  }

  size_t size_bytes() const { return slots_.capacity() * sizeof(uint32_t); }

 private:
  // Scales the upper half of the hash to the table: no division, any table size.
  size_t FirstSlot(uint64_t hash) const {
    return static_cast<size_t>(((hash >> 32) * static_cast<uint64_t>(slots_.size())) >> 32);
  }
  size_t NextSlot(size_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }

  std::vector<uint32_t> slots_;
};

}  // namespace llm
