// The end of a step: everything it did becomes true, or nothing.
#include <algorithm>

#include "src/base/dcheck.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {

void SchedulerImpl::FinishCopies(const StepPlan& plan) {
  for (const BlockCopy& copy : plan.block_copies) blocks_.Release(copy.group, copy.source);
  pinned_copies_.clear();
  plan_outstanding_ = false;
}

// Counted here and not in Plan, so that a step that failed counts nothing.
void SchedulerImpl::CountAdmission(Sequence* sequence) {
  const int32_t found = sequence->num_computed_tokens;
  if (sequence->max_computed_tokens > 0) {
    counters_.rehit_tokens_total +=
        static_cast<uint64_t>(std::min(found, sequence->max_computed_tokens));
    return;
  }
  // What a sibling has computed is no hit.
  const bool looked_up = !sequence->shares_prompt && sequence->score_begin < 0;
  if (!UsesPrefixCache(*sequence) || !looked_up) return;
  sequence->stats.num_cached_tokens = found;
  counters_.cached_tokens_total += static_cast<uint64_t>(found);
  counters_.queried_tokens_total += static_cast<uint64_t>(sequence->num_prompt_tokens());
}

void SchedulerImpl::Commit(const StepPlan& plan) {
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const ScheduledChunk& chunk = plan.chunks[i];
    Sequence* sequence = chunk.sequence;
    LLM_DCHECK(sequence->num_computed_tokens == chunk.begin);
    if (plan.undo[i].admitted) CountAdmission(sequence);
    const int32_t end = chunk.begin + chunk.length;
    const int32_t recomputed =
        std::clamp(sequence->max_computed_tokens - chunk.begin, 0, chunk.length);
    sequence->stats.num_recomputed_tokens += recomputed;
    counters_.recomputed_tokens_total += static_cast<uint64_t>(recomputed);
    sequence->num_computed_tokens = end;
    sequence->max_computed_tokens = std::max(sequence->max_computed_tokens, end);
    sequence->prefix_node =
        blocks_.Publish(sequence->prefix_node, sequence->tokens, end, sequence->block_tables);
    blocks_.ReleaseBehindWindows(end, &sequence->block_tables);
  }
  FinishCopies(plan);
}

void SchedulerImpl::Rollback(const StepPlan& plan) {
  for (const StepPlan::Undo& undo : plan.undo) {
    Sequence* sequence = undo.sequence;
    for (size_t g = 0; g < sequence->block_tables.size(); ++g) {
      BlockTable& table = sequence->block_tables[g];
      for (; table.size() > undo.table_sizes[g]; table.pop_back()) {
        if (table.back() != kNullBlock) blocks_.Release(static_cast<int>(g), table.back());
      }
    }
    if (!undo.admitted) continue;
    blocks_.Leave(sequence->prefix_node);
    sequence->prefix_node = kNoPrefixNode;
    sequence->num_computed_tokens = 0;
    sequence->status = SequenceStatus::kWaiting;
    if (sequence->max_computed_tokens == 0) sequence->stats.first_scheduled_ns = 0;
    Erase(&running_, sequence);
    Insert(&waiting_, sequence);
  }
  FinishCopies(plan);
}

}  // namespace llm
