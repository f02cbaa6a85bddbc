// Who may start running: arithmetic over the blocks that its known tokens will take.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/reserve.h"
#include "src/cache/window.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {

// Alone, a sequence can take every block of every group (but for pinned ones, of which there are
// never too many for a whole context), and its chunks shrink to one token: a full
// group must hold all of it, a window group the window and the block being filled.
absl::Status SchedulerImpl::CheckFits(int64_t num_prompt_tokens, int64_t max_new_tokens) const {
  if (num_prompt_tokens < 1 || max_new_tokens < 1) {
    return absl::InvalidArgumentError(absl::StrCat("request: ", num_prompt_tokens,
                                                   " prompt tokens and ", max_new_tokens,
                                                   " new tokens; each must be at least 1"));
  }
  // Compared without the sum, which a caller's number could overflow.
  if (num_prompt_tokens > options_.max_context_tokens ||
      max_new_tokens > options_.max_context_tokens - num_prompt_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("request: ", num_prompt_tokens, " prompt tokens and ", max_new_tokens,
                     " new tokens exceed the context of ", options_.max_context_tokens));
  }
  const int64_t num_tokens = num_prompt_tokens + max_new_tokens;
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    const int64_t needed = PeakBlocks(num_tokens, 1, blocks_.window(g), options_.block_size);
    if (needed <= blocks_.pool(g).num_blocks()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("request: ", num_prompt_tokens, " prompt tokens and ", max_new_tokens,
                     " new tokens need ", needed, " blocks of ", options_.block_size,
                     " tokens in kv group ", g, ", which has ", blocks_.pool(g).num_blocks()));
  }
  return absl::OkStatus();
}

// Whoever is held back stands before all that pass it: once a long one ends, none of them takes the
// blocks that it needs. Those that have passed it and grew long do not hold it back: there might
// always be one.
bool SchedulerImpl::HeldBack(const Sequence& sequence) const {
  if (sequence.awaits_prefix) return true;
  if (!IsLong(sequence)) return false;
  const auto running = std::count_if(running_.begin(), running_.end(), [&](const Sequence* one) {
    return IsLong(*one) && (one->started_long || one->arrival_index < sequence.arrival_index);
  });
  return running >= options_.max_long_sequences;
}

// Whether the first that waits, and is not held back, would be admitted, with budget left.
// `behind`: in the step behind this one, in which a sibling's prompt has ended.
bool SchedulerImpl::NextMayStart(const Step& step, bool behind) {
  if (FreeLogitRows(step.plan) < 1 ||
      running_.size() >= static_cast<size_t>(options_.max_sequences)) {
    return false;
  }
  const auto first =
      std::find_if(waiting_.begin(), waiting_.end(),
                   [this](const Sequence* sequence) { return !HeldBack(*sequence); });
  if (first == waiting_.end()) return false;
  const Sequence& next = **first;
  const Start start = FindStart(next);
  return start.waits ? behind : MayAdmit(next, start, step.limit.max_tokens);
}

void SchedulerImpl::AdmitWaiting(Step* step) {
  size_t next = 0;  // those before it wait for a running sibling, or are held back
  while (next < waiting_.size() && step->budget() > 0 && FreeLogitRows(step->plan) > 0 &&
         running_.size() < static_cast<size_t>(options_.max_sequences)) {
    Sequence* sequence = waiting_[next];
    if (HeldBack(*sequence)) {
      ++next;
      continue;
    }
    if (!HasTime(*sequence, *step)) return;
    const Start start = FindStart(*sequence);
    if (start.waits) {
      ++next;
      continue;
    }
    // With nothing running every block that no pin and no adoption holds is available; CheckFits
    // and MaxPinnedBlocks have promised that this is enough, and adoptions are soon over.
    const bool others_hold = !running_.empty() || !adoptions_.empty();
    blocked_by_room_ = others_hold && !MayAdmit(*sequence, start, step->limit.max_tokens);
    if (blocked_by_room_) return;
    RecordUndo(sequence, /*admitted=*/true, &step->plan);
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(next));
    sequence->status = SequenceStatus::kRunning;
    sequence->started_long = IsLong(*sequence);
    Insert(&running_, sequence);
    TakeStart(start, sequence, &step->plan);
    if (sequence->max_computed_tokens == 0) sequence->stats.first_scheduled_ns = step->now_ns;
    AddChunk(sequence, ChunkLength(*sequence, *step, step->budget()), step);
  }
}

PrefixMatch SchedulerImpl::MatchPrefix(const Sequence& sequence) const {
  // A hit gives keys and values, but no logits of the tokens that are told or scored.
  if (!UsesPrefixCache(sequence) || sequence.score_begin >= 0) return PrefixMatch();
  // The last known token is always computed, since its logits choose the next.
  return blocks_.Match(sequence.request.cache_salt, sequence.request.cache_variant(),
                       sequence.tokens, sequence.num_tokens() - 1);
}

// What it and the running ones are expected to become must fit. In a window group, where that is
// soon all there is, and for the greedy, all known tokens must, with one block for each running
// sequence to grow into; a window group counts what one chunk of the whole step needs at once.
bool SchedulerImpl::MayAdmit(const Sequence& sequence, const Start& start,
                             int32_t max_step_tokens) {
  const std::vector<BlockManager::MatchUse> use = UseOf(start);
  const int32_t num_blocks = start.sibling != nullptr ? start.sibling_tokens / options_.block_size
                                                      : start.match.num_blocks;
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    const BlockManager::MatchUse& matched = use[static_cast<size_t>(g)];
    const int64_t missing = MissingBlocks(sequence.num_tokens(), max_step_tokens, num_blocks,
                                          matched.blocks, blocks_.window(g), options_.block_size);
    // A running sibling holds the block that is copied already.
    const int64_t partial_source =
        start.sibling == nullptr && start.match.partial_tokens > 0 ? 1 : 0;
    const int64_t needed = std::max<int64_t>(missing, 1) + partial_source;
    const int64_t available = blocks_.pool(g).num_available() - matched.unheld;
    const bool greedy = options_.admission == AdmissionPolicy::kGreedy;
    const bool fits = blocks_.window(g) != 0 || greedy
                          ? needed + OutstandingBlocks(g, max_step_tokens) <= available
                          : 1 + partial_source <= available &&
                                GrowthFits(sequence, g, num_blocks, available - partial_source);
    if (!fits) return false;
  }
  return true;
}

int64_t SchedulerImpl::OutstandingBlocks(int group, int32_t max_step_tokens) const {
  int64_t outstanding = 0;
  for (const Sequence* sequence : running_) {
    const int64_t size =
        static_cast<int64_t>(sequence->block_tables[static_cast<size_t>(group)].size());
    const int32_t first =
        FirstNeededBlock(sequence->num_computed_tokens, blocks_.window(group), options_.block_size);
    outstanding += 1 + MissingBlocks(sequence->num_tokens(), max_step_tokens, size, size - first,
                                     blocks_.window(group), options_.block_size);
  }
  return outstanding;
}

// Whether both blocks of a copy can be had beside the match's whole blocks: the source, and one to
// copy to. Alone in a full pool they cannot, and the sequence must still start.
bool SchedulerImpl::CanCopyPartial(const PrefixMatch& match) const {
  if (match.partial_tokens == 0) return false;
  const std::vector<BlockManager::MatchUse> use = blocks_.Use(match);
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    const int unheld = use[static_cast<size_t>(g)].unheld;
    if (blocks_.pool(g).num_available() - unheld < 2) return false;
  }
  return true;
}

// The partly matching block is copied, never shared, since this sequence will write into it. Its
// source is pinned before anything is allocated.
void SchedulerImpl::TakeMatch(PrefixMatch match, Sequence* sequence, StepPlan* plan) {
  if (!UsesPrefixCache(*sequence)) return;
  if (!CanCopyPartial(match)) match.partial_tokens = 0;
  blocks_.TakeBlocks(match, &sequence->block_tables);
  sequence->num_computed_tokens = match.num_blocks * options_.block_size + match.partial_tokens;
  const size_t first_copy = plan->block_copies.size();
  ReserveTotal(&plan->block_copies, first_copy + sequence->block_tables.size());
  for (int g = 0; match.partial_tokens > 0 && g < blocks_.num_groups(); ++g) {
    BlockCopy copy;
    copy.group = g;
    copy.source = blocks_.PrefixBlock(match.partial_node, g);
    copy.tokens = match.partial_tokens;
    blocks_.AddRef(g, copy.source);
    plan->block_copies.push_back(copy);
  }
  sequence->prefix_node =
      blocks_.Enter(match.node, sequence->request.cache_salt, sequence->request.cache_variant());
  for (size_t i = first_copy; i < plan->block_copies.size(); ++i) {
    BlockCopy& copy = plan->block_copies[i];
    BlockTable& table = sequence->block_tables[static_cast<size_t>(copy.group)];
    ReserveTotal(&table, table.size() + 1);
    copy.destination = blocks_.Allocate(copy.group);
    table.push_back(copy.destination);
  }
}

}  // namespace llm
