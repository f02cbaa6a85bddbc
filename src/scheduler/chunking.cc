// How many tokens of each running sequence a step computes.
#include <algorithm>
#include <utility>

#include "src/base/dcheck.h"
#include "src/base/math.h"
#include "src/base/reserve.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {
namespace {

int32_t Remaining(const Sequence& sequence) {
  return sequence.num_tokens() - sequence.num_computed_tokens;
}

}  // namespace

// Of a step that has no room for all decodes and a tile, prefills get a tile, or half of it where
// that is less: they get ahead in every step.
int32_t SchedulerImpl::KeptForPrefills(const Step& step) {
  if (step.limit.decodes_only) return 0;
  if (running_.size() + kTile <= static_cast<size_t>(step.limit.max_tokens)) return 0;
  const bool any = std::any_of(running_.begin(), running_.end(),
                               [](const Sequence* one) { return Remaining(*one) > 1; });
  return any || NextMayStart(step) ? std::min(kTile, step.limit.max_tokens / 2) : 0;
}

// Victims stand after the sequence that needs room, or are it: erasing them keeps the index right.
void SchedulerImpl::ScheduleDecodes(Step* step) {
  const int32_t kept = KeptForPrefills(*step);
  for (size_t i = 0; i < running_.size() && step->budget() > kept;) {
    Sequence* sequence = running_[i];
    if (Remaining(*sequence) != 1) {
      ++i;
      continue;
    }
    if (!MakeRoom(sequence, step)) continue;  // it preempted itself: another one has its index now
    RecordUndo(sequence, /*admitted=*/false, &step->plan);
    AddChunk(sequence, ChunkLength(*sequence, *step, 1), step);
    ++i;
  }
}

// Prefills share what the decodes have left, as does the first one that waits, if it may start: a
// long prompt must not keep a short one waiting to its end. The shortest is served first, so that
// what it leaves of its share goes to the others. Where whole tiles are not enough for all, the
// most important ones get them.
void SchedulerImpl::SchedulePrefills(Step* step) {
  ReserveTotal(&prefills_, running_.size());
  prefills_.clear();
  for (Sequence* sequence : running_) {
    if (Remaining(*sequence) > 1) prefills_.push_back(sequence);
  }
  if (prefills_.empty()) return;
  const int32_t tokens = TokensInTime(*prefills_[0], *step, step->budget());
  const size_t most = static_cast<size_t>(std::max(1, tokens / kTile));
  size_t sharers = std::min(prefills_.size(), most);
  prefills_.resize(sharers);
  if (sharers < most && NextMayStart(*step)) ++sharers;
  std::stable_sort(prefills_.begin(), prefills_.end(), [](const Sequence* a, const Sequence* b) {
    return Remaining(*a) < Remaining(*b);
  });
  for (Sequence* sequence : prefills_) {
    if (step->budget() < 1 || !HasTime(*sequence, *step)) return;
    const auto sharing = static_cast<int32_t>(sharers);
    if (sharers > 1) --sharers;
    if (sequence->status != SequenceStatus::kRunning) continue;  // gave way to one before it
    if (!MakeRoom(sequence, step)) continue;
    const int32_t left = TokensInTime(*sequence, *step, step->budget());
    const int32_t share = std::max(kTile, CeilDiv(left, sharing));
    RecordUndo(sequence, /*admitted=*/false, &step->plan);
    AddChunk(sequence, ChunkLength(*sequence, *step, sharing > 1 ? share : step->budget()), step);
  }
}

// The tokens that remain, as far as blocks for them are held or available in every group.
int32_t SchedulerImpl::LongestChunk(const Sequence& sequence) const {
  int64_t length = Remaining(sequence);
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
  for (const ScheduledChunk& chunk : plan.chunks) rows -= chunk.num_logits + chunk.num_hidden;
  return rows;
}

// A scored chunk ends where the rows of logits do. It leaves one for a sequence that waits: a long
// text must not keep others from being admitted.
int32_t SchedulerImpl::ChunkLength(const Sequence& sequence, const Step& step,
                                   int32_t share) const {
  const int32_t most = std::min({step.budget(), share, LongestChunk(sequence)});
  const int32_t length = ShortenForSiblings(sequence, LengthInTime(sequence, step, most));
  if (sequence.score_begin < 0) return length;
  const int32_t own = 1;  // counted in as a running sequence's
  const int32_t extra = FreeLogitRows(step.plan) - (waiting_.empty() ? 0 : 1);
  const int32_t unscored = std::max(0, sequence.score_begin - sequence.num_computed_tokens);
  return std::min(length, unscored + own + std::max(0, extra));
}

// Before anything of the sequence changes, so that whatever fails after it can be undone.
void SchedulerImpl::RecordUndo(Sequence* sequence, bool admitted, StepPlan* plan) const {
  StepPlan::Undo undo;
  undo.sequence = sequence;
  undo.admitted = admitted;
  undo.table_sizes.reserve(sequence->block_tables.size());
  for (const BlockTable& table : sequence->block_tables) undo.table_sizes.push_back(table.size());
  plan->undo.push_back(std::move(undo));
}

void SchedulerImpl::AddChunk(Sequence* sequence, int32_t length, Step* step) {
  LLM_DCHECK(length > 0);
  const int32_t end = sequence->num_computed_tokens + length;
  CoverTokens(sequence, end);
  ScheduledChunk chunk;
  chunk.sequence = sequence;
  sequence->planned_tokens = sequence->num_tokens();
  chunk.begin = sequence->num_computed_tokens;
  chunk.length = length;
  if (sequence->score_begin >= 0) {
    const int32_t rows = std::max(0, end - std::max(chunk.begin, sequence->score_begin));
    (sequence->wants_hidden ? chunk.num_hidden : chunk.num_logits) = rows;
  } else {
    chunk.num_logits = end == sequence->num_tokens() ? 1 : 0;
  }
  step->plan.chunks.push_back(chunk);
  step->plan.num_tokens += length;
}

}  // namespace llm
