// Intrusive lists, a chained hash table over their sessions, and a binary heap over their heads.
#include "src/cache/eviction_order.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"

namespace llm {

namespace {

// Of the pool's blocks. Replayed agent traces (tests/unit/cache/trace_hit_rate_test.cc) gain little
// beyond one or two rounds, and lose nothing up to a thousand: what is longer only holds on to the
// blocks of sessions that never come back.
constexpr int64_t kHintRounds = 4;
constexpr int64_t kNever = int64_t{1} << 62;  // releases

}  // namespace

EvictionOrder::EvictionOrder(int num_blocks) : blocks_(Index(num_blocks)) {
  const int num_sessions = std::min(num_blocks, kMaxSessions);
  lists_.resize(Index(1 + num_sessions));
  buckets_.resize(std::bit_ceil(2 * Index(num_sessions) + 1), kNoList);
  heap_.reserve(lists_.size());
  for (ListId list = num_sessions; list > kShared; --list) {
    lists_[Index(list)].next_in_bucket = unused_list_;
    unused_list_ = list;
  }
}

// Ids are the host's, often small and dense numbers; the multiplier is 2^64 over the golden ratio.
EvictionOrder::ListId* EvictionOrder::Bucket(uint64_t session_id) {
  return &buckets_[(session_id * 0x9e3779b97f4a7c15u >> 32) & (buckets_.size() - 1)];
}

EvictionOrder::ListId EvictionOrder::Find(uint64_t session_id) const {
  ListId list = *const_cast<EvictionOrder*>(this)->Bucket(session_id);
  while (list != kNoList && List(list).session_id != session_id) list = List(list).next_in_bucket;
  return list;
}

EvictionOrder::ListId EvictionOrder::FindOrMake(uint64_t session_id) {
  if (session_id == 0) return kShared;
  const ListId known = Find(session_id);
  if (known != kNoList) return known;
  if (unused_list_ == kNoList) return kShared;
  const ListId list = unused_list_;
  SessionList& entry = lists_[Index(list)];
  unused_list_ = entry.next_in_bucket;
  entry.session_id = session_id;
  entry.next_in_bucket = std::exchange(*Bucket(session_id), list);
  return list;
}

void EvictionOrder::Forget(ListId list) {
  SessionList& entry = lists_[Index(list)];
  ListId* link = Bucket(entry.session_id);
  while (*link != list) link = &lists_[Index(*link)].next_in_bucket;
  *link = entry.next_in_bucket;
  entry = SessionList();
  entry.next_in_bucket = std::exchange(unused_list_, list);
}

void EvictionOrder::Add(BlockId block, uint64_t session_id) {
  LLM_DCHECK(!contains(block));
  const ListId list = FindOrMake(session_id);
  SessionList& entry = lists_[Index(list)];
  blocks_[Index(block)] = {entry.tail, kNullBlock, list, num_releases_++};
  ++size_;
  if (entry.tail == kNullBlock) {
    entry.head = block;
    heap_.push_back(list);
    SiftUp(heap_.size() - 1);
  } else {
    blocks_[Index(entry.tail)].next = block;
  }
  entry.tail = block;
}

void EvictionOrder::Remove(BlockId block) {
  LLM_DCHECK(contains(block));
  const Block removed = std::exchange(blocks_[Index(block)], Block());
  SessionList& entry = lists_[Index(removed.list)];
  --size_;
  (removed.next == kNullBlock ? entry.tail : blocks_[Index(removed.next)].previous) =
      removed.previous;
  if (removed.previous != kNullBlock) {
    blocks_[Index(removed.previous)].next = removed.next;
    return;
  }
  entry.head = removed.next;
  if (entry.head != kNullBlock) {
    SiftDown(Index(entry.heap_index));  // heads only grow younger
    return;
  }
  EraseFromHeap(removed.list);
  if (removed.list != kShared) Forget(removed.list);
}

void EvictionOrder::Hint(uint64_t session_id, SessionHint hint) {
  const ListId list = session_id == 0 ? kNoList : Find(session_id);
  if (list == kNoList || List(list).hint == hint) return;
  lists_[Index(list)].hint = hint;
  SiftUp(Index(List(list).heap_index));
  SiftDown(Index(List(list).heap_index));
}

int64_t EvictionOrder::Rank(ListId list) const {
  const int64_t released = blocks_[Index(List(list).head)].release_index;
  const int64_t hint_releases = kHintRounds * static_cast<int64_t>(blocks_.size());
  switch (List(list).hint) {
    case SessionHint::kNone:
      return released;
    case SessionHint::kToolCall:
      return released + hint_releases;
    case SessionHint::kHuman:
      return released - hint_releases;
    case SessionHint::kClosed:
      return released - kNever;
  }
  return released;
}

bool EvictionOrder::Before(ListId a, ListId b) const {
  const int64_t rank_a = Rank(a);
  const int64_t rank_b = Rank(b);
  return rank_a != rank_b ? rank_a < rank_b : a < b;
}

void EvictionOrder::Place(size_t heap_index, ListId list) {
  heap_[heap_index] = list;
  lists_[Index(list)].heap_index = static_cast<int32_t>(heap_index);
}

void EvictionOrder::SiftUp(size_t heap_index) {
  const ListId list = heap_[heap_index];
  for (; heap_index > 0 && Before(list, heap_[(heap_index - 1) / 2]);
       heap_index = (heap_index - 1) / 2) {
    Place(heap_index, heap_[(heap_index - 1) / 2]);
  }
  Place(heap_index, list);
}

void EvictionOrder::SiftDown(size_t heap_index) {
  const ListId list = heap_[heap_index];
  while (2 * heap_index + 1 < heap_.size()) {
    size_t child = 2 * heap_index + 1;
    if (child + 1 < heap_.size() && Before(heap_[child + 1], heap_[child])) ++child;
    if (!Before(heap_[child], list)) break;
    Place(heap_index, heap_[child]);
    heap_index = child;
  }
  Place(heap_index, list);
}

void EvictionOrder::EraseFromHeap(ListId list) {
  const size_t heap_index = Index(List(list).heap_index);
  const ListId last = heap_.back();
  heap_.pop_back();
  if (heap_index < heap_.size()) {
    Place(heap_index, last);
    SiftUp(heap_index);
    SiftDown(Index(List(last).heap_index));
  }
  lists_[Index(list)].heap_index = -1;
}

absl::Status EvictionOrder::CheckInvariants() const {
  int size = 0;
  for (size_t i = 0; i < heap_.size(); ++i) {
    const SessionList& entry = List(heap_[i]);
    if (entry.heap_index != static_cast<int32_t>(i) || entry.head == kNullBlock ||
        (i > 0 && Before(heap_[i], heap_[(i - 1) / 2])) ||
        (heap_[i] != kShared && Find(entry.session_id) != heap_[i])) {
      return absl::InternalError(absl::StrCat("list ", heap_[i], " is misplaced at ", i));
    }
    BlockId previous = kNullBlock;
    for (BlockId block = entry.head; block != kNullBlock; block = blocks_[Index(block)].next) {
      const Block& link = blocks_[Index(block)];
      if (link.list != heap_[i] || link.previous != previous || ++size > size_ ||
          (previous != kNullBlock &&
           blocks_[Index(previous)].release_index >= link.release_index)) {
        return absl::InternalError(
            absl::StrCat("block ", block, " is misplaced in list ", heap_[i]));
      }
      previous = block;
    }
    if (previous != entry.tail) {
      return absl::InternalError(absl::StrCat("list ", heap_[i], " ends early"));
    }
  }
  if (size == size_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the order counts ", size_, " blocks, has ", size));
}

}  // namespace llm
