// How many tokens of each running sequence a step computes.
#include <algorithm>

#include "src/base/dcheck.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {

// Victims stand after the sequence that needs room, or are it: erasing them keeps the index right.
void SchedulerImpl::ScheduleRunning(bool decodes, Step* step) {
  for (size_t i = 0; i < running_.size() && step->budget() > 0;) {
    Sequence* sequence = running_[i];
    const int32_t remaining = sequence->num_tokens() - sequence->num_computed_tokens;
    if (remaining < 1 || (remaining == 1) != decodes) {
      ++i;
      continue;
    }
    if (!MakeRoom(sequence, step)) continue;  // it preempted itself: another one has its index now
    AddChunk(sequence, ChunkLength(*sequence, *step), /*admitted=*/false, step);
    ++i;
  }
}

// The tokens that remain, as far as blocks for them are held or available in every group.
int32_t SchedulerImpl::LongestChunk(const Sequence& sequence) const {
  int64_t length = sequence.num_tokens() - sequence.num_computed_tokens;
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    const int64_t covered =
        static_cast<int64_t>(sequence.block_tables[static_cast<size_t>(g)].size()) +
        blocks_.pool(g).num_available();
    length = std::min(length, covered * options_.block_size - sequence.num_computed_tokens);
  }
  return static_cast<int32_t>(length);
}

// Rows that are left when each running sequence that is not in the plan yet has got one.
int32_t SchedulerImpl::FreeLogitRows(const StepPlan& plan) const {
  int32_t rows = std::max(options_.max_logit_rows, options_.max_sequences) -
                 static_cast<int32_t>(running_.size() - plan.chunks.size());
  for (const ScheduledChunk& chunk : plan.chunks) rows -= chunk.num_logits;
  return rows;
}

// A scored chunk ends where the rows of logits do. It leaves one for a sequence that waits: a long
// text must not keep others from being admitted.
int32_t SchedulerImpl::ChunkLength(const Sequence& sequence, const Step& step) const {
  const int32_t length =
      ShortenForSiblings(sequence, std::min(step.budget(), LongestChunk(sequence)));
  if (sequence.score_begin < 0) return length;
  const int32_t own = 1;  // counted in as a running sequence's
  const int32_t extra = FreeLogitRows(step.plan) - (waiting_.empty() ? 0 : 1);
  const int32_t unscored = std::max(0, sequence.score_begin - sequence.num_computed_tokens);
  return std::min(length, unscored + own + std::max(0, extra));
}

void SchedulerImpl::AddChunk(Sequence* sequence, int32_t length, bool admitted, Step* step) {
  LLM_DCHECK(length > 0);
  StepPlan::Undo undo;
  undo.sequence = sequence;
  undo.admitted = admitted;
  const int32_t end = sequence->num_computed_tokens + length;
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    BlockTable& table = sequence->block_tables[static_cast<size_t>(g)];
    undo.table_sizes.push_back(admitted ? 0 : table.size());
    while (static_cast<int64_t>(table.size()) * options_.block_size < end) {
      table.push_back(blocks_.Allocate(g));
      LLM_DCHECK(table.back() != kNullBlock);
    }
  }
  ScheduledChunk chunk;
  chunk.sequence = sequence;
  chunk.begin = sequence->num_computed_tokens;
  chunk.length = length;
  if (sequence->score_begin >= 0) {
    chunk.num_logits = std::max(0, end - std::max(chunk.begin, sequence->score_begin));
  } else {
    chunk.num_logits = end == sequence->num_tokens() ? 1 : 0;
  }
  step->plan.chunks.push_back(chunk);
  step->plan.undo.push_back(std::move(undo));
  step->plan.num_tokens += length;
}

}  // namespace llm
