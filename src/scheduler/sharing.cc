// Choices of one request share its prompt: one of them computes it, the others wait, and then take
// it from any sibling that runs, with or without a prefix cache.
#include <algorithm>

#include "src/base/reserve.h"
#include "src/cache/window.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {

// A sibling shares the prompt, and the last known token is always computed, since its logits choose
// the next. What the prefix cache gives is taken where it is at least as much. One that waits is
// not looked up: that would be done again in each step.
SchedulerImpl::Start SchedulerImpl::FindStart(const Sequence& sequence) const {
  Start start;
  if (sequence.siblings != nullptr && sequence.score_begin < 0) {
    start.sibling_tokens = std::min(sequence.num_prompt_tokens(), sequence.num_tokens() - 1);
    FindSibling(*sequence.siblings, &start);
  }
  if (start.waits) return start;
  start.match = MatchPrefix(sequence);
  const int32_t matched = start.match.num_blocks * options_.block_size + start.match.partial_tokens;
  if (matched >= start.sibling_tokens) start.sibling = nullptr;
  return start;
}

void SchedulerImpl::FindSibling(const std::vector<Sequence*>& siblings, Start* start) const {
  if (start->sibling_tokens < 1) return;
  for (const Sequence* sibling : siblings) {
    if (sibling->status != SequenceStatus::kRunning) continue;
    if (CanShare(*sibling, start->sibling_tokens)) {
      start->sibling = sibling;
      start->waits = false;
      return;
    }
    start->waits |= sibling->num_computed_tokens < start->sibling_tokens;
  }
}

// Siblings take the prompt but for its last token. Where computing that one moves a window on, past
// a block that they need, the chunk ends before it, and all of them compute it in the next step.
int32_t SchedulerImpl::ShortenForSiblings(const Sequence& sequence, int32_t length) const {
  const int32_t shared = sequence.num_prompt_tokens() - 1;
  const int32_t begin = sequence.num_computed_tokens;
  if (sequence.siblings == nullptr || begin >= shared || begin + length <= shared) return length;
  const bool awaited = std::any_of(
      sequence.siblings->begin(), sequence.siblings->end(),
      [](const Sequence* sibling) { return sibling->status == SequenceStatus::kWaiting; });
  for (int g = 0; awaited && g < blocks_.num_groups(); ++g) {
    const int window = blocks_.window(g);
    if (FirstNeededBlock(shared, window, options_.block_size) !=
        FirstNeededBlock(begin + length, window, options_.block_size)) {
      return shared - begin;
    }
  }
  return length;
}

// Windows that have moved on leave the end of the prompt behind.
bool SchedulerImpl::CanShare(const Sequence& sibling, int32_t num_tokens) const {
  if (sibling.num_computed_tokens < num_tokens) return false;
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    const BlockTable& table = sibling.block_tables[static_cast<size_t>(g)];
    const int32_t first = FirstNeededBlock(num_tokens, blocks_.window(g), options_.block_size);
    if (table[static_cast<size_t>(first)] == kNullBlock) return false;
  }
  return true;
}

// The blocks of a sibling are held already: taking them leaves as many available.
std::vector<BlockManager::MatchUse> SchedulerImpl::UseOf(const Start& start) const {
  if (start.sibling == nullptr) return blocks_.Use(start.match);
  std::vector<BlockManager::MatchUse> use(static_cast<size_t>(blocks_.num_groups()));
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    use[static_cast<size_t>(g)].blocks =
        start.sibling_tokens / options_.block_size -
        FirstNeededBlock(start.sibling_tokens, blocks_.window(g), options_.block_size);
  }
  return use;
}

void SchedulerImpl::TakeStart(const Start& start, Sequence* sequence, StepPlan* plan) {
  sequence->shares_prompt = start.sibling != nullptr;
  sequence->num_shared_blocks = start.sibling != nullptr
                                    ? start.sibling_tokens / options_.block_size
                                    : start.match.num_blocks;
  if (start.sibling == nullptr) {
    TakeMatch(start.match, sequence, plan);
  } else {
    TakeFromSibling(start, sequence, plan);
  }
}

// Whole blocks are shared by reference. The last one is copied, since both will write into theirs;
// the source is pinned until the step is over, as that of a cached block is. A source that is
// itself the destination of an earlier copy of this plan is filled by then: copies run in order.
// All room is made first, so that what fails can be undone.
void SchedulerImpl::TakeFromSibling(const Start& start, Sequence* sequence, StepPlan* plan) {
  const size_t num_groups = sequence->block_tables.size();
  ReserveTotal(&plan->block_copies, plan->block_copies.size() + num_groups);
  const size_t num_blocks = static_cast<size_t>(start.sibling_tokens / options_.block_size);
  for (BlockTable& table : sequence->block_tables) {
    table.reserve(num_blocks + 1);
    table.assign(num_blocks, kNullBlock);
  }
  if (UsesPrefixCache(*sequence)) {
    sequence->prefix_node = blocks_.Enter(start.match.node, sequence->request.cache_salt,
                                          sequence->request.cache_variant());
  }
  sequence->num_computed_tokens = start.sibling_tokens;
  for (size_t g = 0; g < num_groups; ++g) {
    const int group = static_cast<int>(g);
    const BlockTable& source = start.sibling->block_tables[g];
    BlockTable& table = sequence->block_tables[g];
    const int32_t first =
        FirstNeededBlock(start.sibling_tokens, blocks_.window(group), options_.block_size);
    for (size_t i = static_cast<size_t>(first); i < num_blocks; ++i) {
      blocks_.AddRef(group, source[i]);
      table[i] = source[i];
    }
    BlockCopy copy;
    copy.group = group;
    copy.tokens = start.sibling_tokens % options_.block_size;
    if (copy.tokens == 0) continue;
    copy.source = source[num_blocks];
    blocks_.AddRef(group, copy.source);
    copy.destination = blocks_.Allocate(group);
    table.push_back(copy.destination);
    plan->block_copies.push_back(copy);
  }
}

}  // namespace llm
