// Which cached block of a pool goes next: the least recently released one, as the host's hints
// about sessions shift it.
//
// Each session with cached blocks has a list of its own, in the order of release; blocks without a
// session, and those that several sessions use, share one. The next block is the first of one of
// the lists: the one with the smallest release number plus what its session's hint is worth. A hint
// is worth a fixed number of releases and counts from the release on, not from the hint: it grows
// old with the blocks, and saying it again does not renew it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/cache/block_table.h"

namespace llm {

// What the host knows of a session between two of its requests.
enum class SessionHint : int32_t {
  kNone,
  kToolCall,  // its next request comes soon
  kHuman,     // late
  kClosed,    // never
};

// Constant time, but logarithmic in the number of sessions for Remove and Hint. Allocates only when
// made.
class EvictionOrder {
 public:
  explicit EvictionOrder(int num_blocks);

  // REQUIRES: not in the order. Makes the block its session's most recent one; 0: no session. The
  // blocks of a session beyond kMaxSessions go with those without one.
  void Add(BlockId block, uint64_t session_id);
  // REQUIRES: in the order.
  void Remove(BlockId block);
  // Holds for the session's blocks that are in the order now, and for those added before another
  // hint. The last one counts. Nothing when it has no blocks here.
  void Hint(uint64_t session_id, SessionHint hint);

  // kNullBlock: none.
  BlockId next() const { return heap_.empty() ? kNullBlock : List(heap_[0]).head; }
  int size() const { return size_; }
  bool contains(BlockId block) const { return blocks_[Index(block)].list != kNoList; }

  // INTERNAL unless lists, heap and blocks agree.
  absl::Status CheckInvariants() const;

  static constexpr int kMaxSessions = 4096;  // 160 KiB; known at once in one pool

 private:
  using ListId = int32_t;
  static constexpr ListId kNoList = -1;
  static constexpr ListId kShared = 0;  // of blocks that are not one session's

  struct Block {
    BlockId previous = kNullBlock;
    BlockId next = kNullBlock;
    ListId list = kNoList;
    int64_t release_index = 0;
  };
  struct SessionList {
    uint64_t session_id = 0;
    BlockId head = kNullBlock;
    BlockId tail = kNullBlock;
    ListId next_in_bucket = kNoList;  // of an unused list: the next unused one
    int32_t heap_index = -1;
    SessionHint hint = SessionHint::kNone;
  };

  static size_t Index(int32_t id) { return static_cast<size_t>(id); }
  const SessionList& List(ListId list) const { return lists_[Index(list)]; }
  ListId* Bucket(uint64_t session_id);
  ListId Find(uint64_t session_id) const;
  ListId FindOrMake(uint64_t session_id);
  void Forget(ListId list);
  int64_t Rank(ListId list) const;
  bool Before(ListId a, ListId b) const;
  void Place(size_t heap_index, ListId list);
  void SiftUp(size_t heap_index);
  void SiftDown(size_t heap_index);
  void EraseFromHeap(ListId list);

  std::vector<Block> blocks_;
  std::vector<SessionList> lists_;  // [0]: kShared
  std::vector<ListId> buckets_;     // of sessions by id
  std::vector<ListId> heap_;        // lists that are not empty, the next block's first
  ListId unused_list_ = kNoList;
  int64_t num_releases_ = 0;
  int size_ = 0;
};

}  // namespace llm
