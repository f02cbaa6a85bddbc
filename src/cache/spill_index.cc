// A hash table with chains, and a list in the order of use.
#include "src/cache/spill_index.h"

#include <algorithm>
#include <bit>

#include "src/base/dcheck.h"

namespace llm {

SpillIndex::SpillIndex(int32_t num_slots, int32_t block_size)
    : block_size_(static_cast<size_t>(block_size)),
      entries_(static_cast<size_t>(num_slots)),
      tokens_(entries_.size() * block_size_),
      buckets_(std::bit_ceil(2 * entries_.size() + 1), kNoSlot) {
  Clear();
}

int64_t SpillIndex::BytesOfSlot(int32_t block_size) {
  return static_cast<int64_t>(sizeof(Entry) + 4 * sizeof(Slot)) +
         static_cast<int64_t>(sizeof(int32_t)) * block_size;
}

void SpillIndex::Clear() {
  std::fill(buckets_.begin(), buckets_.end(), kNoSlot);
  newest_ = oldest_ = free_ = kNoSlot;
  size_ = 0;
  for (Slot slot = num_slots() - 1; slot >= 0; --slot) {
    entries_[Index(slot)].newer = free_;
    free_ = slot;
  }
}

absl::Span<const int32_t> SpillIndex::Tokens(Slot slot) const {
  return absl::MakeConstSpan(tokens_).subspan(Index(slot) * block_size_, block_size_);
}

SpillIndex::Slot SpillIndex::Find(const PrefixBlockId& id) const {
  Slot slot = buckets_[Bucket(id.key, id.group)];
  for (; slot != kNoSlot; slot = entries_[Index(slot)].next_in_bucket) {
    const Entry& entry = entries_[Index(slot)];
    if (entry.key == id.key && entry.parent_key == id.parent_key && entry.group == id.group &&
        Tokens(slot) == id.tokens) {
      return slot;
    }
  }
  return kNoSlot;
}

void SpillIndex::Link(Slot slot) {
  Entry& entry = entries_[Index(slot)];
  entry.newer = kNoSlot;
  entry.older = newest_;
  (newest_ == kNoSlot ? oldest_ : entries_[Index(newest_)].newer) = slot;
  newest_ = slot;
}

void SpillIndex::Unlink(Slot slot) {
  const Entry& entry = entries_[Index(slot)];
  (entry.newer == kNoSlot ? newest_ : entries_[Index(entry.newer)].older) = entry.older;
  (entry.older == kNoSlot ? oldest_ : entries_[Index(entry.older)].newer) = entry.newer;
}

void SpillIndex::Touch(Slot slot) {
  Unlink(slot);
  Link(slot);
}

void SpillIndex::Demote(Slot slot) {
  Unlink(slot);
  Entry& entry = entries_[Index(slot)];
  entry.newer = oldest_;
  entry.older = kNoSlot;
  (oldest_ == kNoSlot ? newest_ : entries_[Index(oldest_)].older) = slot;
  oldest_ = slot;
}

SpillIndex::Slot SpillIndex::Add(const PrefixBlockId& id, uint64_t checksum) {
  LLM_DCHECK(id.tokens.size() == block_size_ && num_slots() > 0);
  if (free_ == kNoSlot) Remove(oldest_);
  const Slot slot = free_;
  Entry& entry = entries_[Index(slot)];
  free_ = entry.newer;
  Slot& bucket = buckets_[Bucket(id.key, id.group)];
  entry = {.key = id.key,
           .parent_key = id.parent_key,
           .checksum = checksum,
           .group = id.group,
           .next_in_bucket = bucket};
  bucket = slot;
  std::copy(id.tokens.begin(), id.tokens.end(),
            tokens_.begin() + static_cast<ptrdiff_t>(Index(slot) * block_size_));
  Link(slot);
  ++size_;
  return slot;
}

void SpillIndex::Remove(Slot slot) {
  Entry& entry = entries_[Index(slot)];
  Slot* link = &buckets_[Bucket(entry.key, entry.group)];
  while (*link != slot) link = &entries_[Index(*link)].next_in_bucket;
  *link = entry.next_in_bucket;
  Unlink(slot);
  entry.newer = free_;
  free_ = slot;
  --size_;
}

}  // namespace llm
