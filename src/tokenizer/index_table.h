// A hash table that holds only indices; the caller keeps the keys and compares them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llm {

// Four bytes a slot and two thirds full: a vocabulary of 262,144 tokens costs 1.5 MiB where a map
// of strings costs 20. A slot holds nine bits of the hash beside the index, so that a search hardly
// ever looks at a key that is another one: keys lie where no cache has them.
class IndexTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  static constexpr uint32_t kMaxEntries = (1u << 23) - 1;

  // REQUIRES: num_entries <= kMaxEntries.
  explicit IndexTable(size_t num_entries) : slots_(num_entries + num_entries / 2 + 1, kNone) {}

  // The index for which equals(index) holds among those inserted with `hash`, or kNone.
  template <typename Equals>
  uint32_t Find(uint64_t hash, Equals equals) const {
    const uint32_t value = slots_[FindSlot(hash, equals)];
    return value == kNone ? kNone : value & kIndexMask;
  }

  // Inserts `index` unless Find finds one: then that one is returned, else kNone. REQUIRES: index <
  // kMaxEntries, and at most num_entries are inserted, so that an empty slot is always left.
  template <typename Equals>
  uint32_t FindOrInsert(uint64_t hash, uint32_t index, Equals equals) {
    uint32_t& value = slots_[FindSlot(hash, equals)];
    if (value != kNone) return value & kIndexMask;
    value = Tag(hash) | index;
    return kNone;
  }

  // Brings the slot where a search for `hash` begins nearer.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[FirstSlot(hash)], 1); }

  size_t size_bytes() const { return slots_.capacity() * sizeof(uint32_t); }

 private:
  static constexpr int kIndexBits = 23;
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;

  // The lower bits, since the upper ones choose the slot. No index is all ones: no value is kNone.
  static uint32_t Tag(uint64_t hash) { return static_cast<uint32_t>(hash) << kIndexBits; }

  // Where the index is, or the empty slot where it would be.
  template <typename Equals>
  size_t FindSlot(uint64_t hash, Equals equals) const {
    const uint32_t tag = Tag(hash);
    for (size_t slot = FirstSlot(hash);; slot = NextSlot(slot)) {
      const uint32_t value = slots_[slot];
      if (value == kNone) return slot;
      if ((value & ~kIndexMask) == tag && equals(value & kIndexMask)) return slot;
    }
  }

  // Scales the upper half of the hash to the table: no division, any table size.
  size_t FirstSlot(uint64_t hash) const {
    return static_cast<size_t>(((hash >> 32) * static_cast<uint64_t>(slots_.size())) >> 32);
  }
  size_t NextSlot(size_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }

  std::vector<uint32_t> slots_;
};

}  // namespace llm
