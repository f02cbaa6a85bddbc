// A list of the free blocks and the order of the cached ones; a held block is in neither.
#include "src/cache/block_pool.h"

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"

namespace llm {

BlockPool::BlockPool(int num_blocks)
    : blocks_(static_cast<size_t>(num_blocks)), cached_(num_blocks) {
  for (BlockId block = 0; block < num_blocks; ++block) PushFree(block);
}

void BlockPool::PushFree(BlockId block) {
  (last_free_ == kNullBlock ? first_free_ : blocks_[Index(last_free_)].next) = block;
  last_free_ = block;
  blocks_[Index(block)].next = kNullBlock;
  ++num_free_;
}

BlockId BlockPool::PopFree() {
  const BlockId block = first_free_;
  first_free_ = blocks_[Index(block)].next;
  if (first_free_ == kNullBlock) last_free_ = kNullBlock;
  --num_free_;
  return block;
}

BlockPool::Allocation BlockPool::Allocate() {
  Allocation result;
  if (num_free_ > 0) {
    result.block = PopFree();
  } else {
    result.block = cached_.next();
    if (result.block == kNullBlock) return result;
    result.evicted = true;
    cached_.Remove(result.block);
  }
  blocks_[Index(result.block)] = Block();
  blocks_[Index(result.block)].num_refs = 1;
  return result;
}

void BlockPool::AddRef(BlockId block) {
  Block& entry = blocks_[Index(block)];
  LLM_DCHECK(entry.num_refs > 0 || entry.findable);
  if (entry.num_refs == 0) cached_.Remove(block);
  ++entry.num_refs;
}

void BlockPool::Release(BlockId block) {
  Block& entry = blocks_[Index(block)];
  LLM_DCHECK(entry.num_refs > 0);
  if (--entry.num_refs > 0) return;
  if (entry.findable) {
    cached_.Add(block, entry.session_id);
  } else {
    PushFree(block);
  }
}

void BlockPool::Release(BlockId block, uint64_t session_id) {
  Block& entry = blocks_[Index(block)];
  if (!entry.used) {
    entry.session_id = session_id;
  } else if (entry.session_id != session_id) {
    entry.session_id = 0;
  }
  entry.used = true;
  Release(block);
}

void BlockPool::Pin(BlockId block) {
  AddRef(block);
  if (blocks_[Index(block)].num_pins++ == 0) ++num_pinned_;
}

void BlockPool::Unpin(BlockId block) {
  LLM_DCHECK(num_pins(block) > 0);
  if (--blocks_[Index(block)].num_pins == 0) --num_pinned_;
  Release(block);
}

void BlockPool::SetFindable(BlockId block, bool findable) {
  Block& entry = blocks_[Index(block)];
  LLM_DCHECK(!findable || entry.num_refs > 0);
  if (entry.num_refs == 0 && entry.findable && !findable) {
    cached_.Remove(block);
    PushFree(block);
  }
  entry.findable = findable;
}

absl::Status BlockPool::CheckInvariants() const {
  std::vector<bool> free(blocks_.size(), false);
  int num_free = 0;
  for (BlockId block = first_free_; block != kNullBlock; block = blocks_[Index(block)].next) {
    if (free[Index(block)]) {
      return absl::InternalError(absl::StrCat("block ", block, " is free twice"));
    }
    free[Index(block)] = true;
    ++num_free;
  }
  if (num_free != num_free_) {
    return absl::InternalError(absl::StrCat("counts ", num_free_, " free blocks, has ", num_free));
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& entry = blocks_[i];
    const bool in_order = cached_.contains(static_cast<BlockId>(i));
    if (free[i] == (entry.num_refs == 0 && !entry.findable) &&
        in_order == (entry.num_refs == 0 && entry.findable)) {
      continue;
    }
    return absl::InternalError(
        absl::StrCat("block ", i, " is in the wrong list: refs ", entry.num_refs, ", findable ",
                     entry.findable, ", free ", free[i] ? 1 : 0, ", cached ", in_order ? 1 : 0));
  }
  return cached_.CheckInvariants();
}

}  // namespace llm
