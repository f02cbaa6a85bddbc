// Who is told of blocks that leave the prefix cache, while their contents are still there.
#pragma once

#include "src/cache/block_table.h"
#include "src/cache/spill_index.h"

namespace llm {

class EvictionListener {
 public:
  virtual ~EvictionListener() = default;
  // Of whole blocks alone. What `id` borrows is valid during the call, in which nothing of the
  // cache may be called. Does not throw.
  virtual void OnEvict(const PrefixBlockId& id, BlockId block) = 0;
};

// Where a prefix lies: the keys of its whole blocks, and how many of them a match would find.
struct PrefixPlace {
  Hash128 root;               // parent_key of the first block
  std::vector<Hash128> keys;  // [whole blocks]
  int32_t cached_blocks = 0;
};

}  // namespace llm
