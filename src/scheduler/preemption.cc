// Who gives up its blocks when they run out. A preempted sequence holds nothing, and recomputes or
// finds its prefix again.
#include <algorithm>

#include "src/scheduler/scheduler_impl.h"

namespace llm {

// Room for one token at least; longer chunks shrink to what there is. Adoptions give way first:
// nobody runs on what they hold. False: the sequence had to preempt itself.
bool SchedulerImpl::MakeRoom(Sequence* sequence, Step* step) {
  while (LongestChunk(*sequence) < 1) {
    if (!adoptions_.empty()) {
      DropAdoption(adoptions_.back());
      continue;
    }
    Sequence* victim = PickVictim(*sequence);
    Preempt(victim, step);
    if (victim == sequence) return false;
  }
  return true;
}

// The one that loses the least computed work, the least important at a tie, among those less
// important than `needy`; `needy` itself when there is none. The most important sequence is thus
// never preempted, and so always runs to its end.
Sequence* SchedulerImpl::PickVictim(const Sequence& needy) const {
  Sequence* victim = running_.back();
  if (options_.victims == VictimPolicy::kNewest) return victim;
  for (size_t i = running_.size(); i-- > 0 && running_[i] != &needy;) {
    if (running_[i]->num_computed_tokens < victim->num_computed_tokens) victim = running_[i];
  }
  return victim;
}

void SchedulerImpl::Preempt(Sequence* sequence, Step* step) {
  StepPlan& plan = step->plan;
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    if (plan.chunks[i].sequence != sequence) continue;
    plan.num_tokens -= plan.chunks[i].length;
    plan.chunks.erase(plan.chunks.begin() + static_cast<ptrdiff_t>(i));
    plan.undo.erase(plan.undo.begin() + static_cast<ptrdiff_t>(i));
    break;
  }
  ReleaseBlocks(sequence);
  plan.preempted.push_back(
      {sequence, sequence->num_computed_tokens, sequence->stats.num_retained_tokens});
  sequence->num_computed_tokens = 0;
  sequence->status = SequenceStatus::kWaiting;
  ++sequence->stats.num_preemptions;
  ++counters_.preemptions_total;
  Erase(&running_, sequence);
  Insert(&waiting_, sequence);
  step->preempted = true;
}

}  // namespace llm
