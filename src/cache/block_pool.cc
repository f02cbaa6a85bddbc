// Two intrusive lists, free and cached; a held block is in neither.
#include "src/cache/block_pool.h"

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"

namespace llm {

BlockPool::BlockPool(int num_blocks) : blocks_(static_cast<size_t>(num_blocks)) {
  for (BlockId block = 0; block < num_blocks; ++block) PushBack(&free_, block);
}

void BlockPool::PushBack(List* list, BlockId block) {
  Block& entry = blocks_[Index(block)];
  entry.previous = list->tail;
  entry.next = kNullBlock;
  if (list->tail == kNullBlock) {
    list->head = block;
  } else {
    blocks_[Index(list->tail)].next = block;
  }
  list->tail = block;
  ++list->size;
}

void BlockPool::Remove(List* list, BlockId block) {
  Block& entry = blocks_[Index(block)];
  if (entry.previous == kNullBlock) {
    list->head = entry.next;
  } else {
    blocks_[Index(entry.previous)].next = entry.next;
  }
  if (entry.next == kNullBlock) {
    list->tail = entry.previous;
  } else {
    blocks_[Index(entry.next)].previous = entry.previous;
  }
  entry.previous = entry.next = kNullBlock;
  --list->size;
}

BlockPool::Allocation BlockPool::Allocate() {
  Allocation result;
  List* list = free_.size > 0 ? &free_ : &cached_;
  if (list->size == 0) return result;
  result.block = list->head;
  result.evicted = list == &cached_;
  Remove(list, result.block);
  blocks_[Index(result.block)].num_refs = 1;
  blocks_[Index(result.block)].findable = false;
  return result;
}

void BlockPool::AddRef(BlockId block) {
  Block& entry = blocks_[Index(block)];
  LLM_DCHECK(entry.num_refs > 0 || entry.findable);
  if (entry.num_refs == 0) Remove(&cached_, block);
  ++entry.num_refs;
}

void BlockPool::Release(BlockId block) {
  Block& entry = blocks_[Index(block)];
  LLM_DCHECK(entry.num_refs > 0);
  if (--entry.num_refs > 0) return;
  PushBack(entry.findable ? &cached_ : &free_, block);
}

void BlockPool::SetFindable(BlockId block, bool findable) {
  Block& entry = blocks_[Index(block)];
  LLM_DCHECK(!findable || entry.num_refs > 0);
  if (entry.num_refs == 0 && entry.findable && !findable) {
    Remove(&cached_, block);
    PushBack(&free_, block);
  }
  entry.findable = findable;
}

absl::Status BlockPool::CheckInvariants() const {
  std::vector<bool> listed(blocks_.size(), false);
  for (const List* list : {&free_, &cached_}) {
    int size = 0;
    for (BlockId block = list->head; block != kNullBlock; block = blocks_[Index(block)].next) {
      const Block& entry = blocks_[Index(block)];
      if (listed[Index(block)] || entry.num_refs != 0 || entry.findable != (list == &cached_)) {
        return absl::InternalError(absl::StrCat("block ", block, " is in the wrong list: refs ",
                                                entry.num_refs, ", findable ", entry.findable));
      }
      listed[Index(block)] = true;
      ++size;
    }
    if (size != list->size) {
      return absl::InternalError(absl::StrCat("list counts ", list->size, " blocks, has ", size));
    }
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (listed[i] == (blocks_[i].num_refs > 0)) {
      return absl::InternalError(absl::StrCat("block ", i, " with ", blocks_[i].num_refs,
                                              " references: listed ", listed[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace llm
