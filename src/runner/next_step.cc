// Penalties, bans and rows that the host draws from need the token first: such steps wait for it.
#include "src/runner/next_step.h"

#include <algorithm>

#include "src/base/math.h"

namespace llm {
namespace {

bool SameBlocks(const GroupBatch& wanted, size_t wanted_row, const GroupBatch& made,
                size_t made_row, int64_t num_blocks) {
  const auto row_of = [](const GroupBatch& group, size_t row) {
    return group.block_table.data() + row * static_cast<size_t>(group.max_blocks);
  };
  return wanted.slot_mapping[wanted_row] == made.slot_mapping[made_row] &&
         std::equal(row_of(wanted, wanted_row), row_of(wanted, wanted_row) + num_blocks,
                    row_of(made, made_row));
}

// But for the token.
bool SameRow(const Batch& wanted, size_t wanted_row, const Batch& made, size_t made_row,
             int block_size) {
  const int32_t context = wanted.context_lens[wanted_row];
  if (wanted.positions[wanted_row] != made.positions[made_row] ||
      context != made.context_lens[made_row] ||
      wanted.rope_variants[wanted_row] != made.rope_variants[made_row]) {
    return false;
  }
  const int64_t num_blocks = CeilDiv(context, block_size);
  for (size_t group = 0; group < wanted.groups.size(); ++group) {
    if (!SameBlocks(wanted.groups[group], wanted_row, made.groups[group], made_row, num_blocks)) {
      return false;
    }
  }
  return true;
}

}  // namespace

NextStep::NextStep(int max_sequences, int block_size) : block_size_(block_size) {
  plan_.chunks.reserve(static_cast<size_t>(max_sequences));
  pending_.reserve(static_cast<size_t>(max_sequences));
  rows_.reserve(static_cast<size_t>(max_sequences));
}

bool NextStep::Follow(const StepPlan& plan, const QueuedStep& queued,
                      absl::Span<const int32_t> rows) {
  plan_.chunks.clear();
  pending_.clear();
  rows_.clear();
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    Sequence* sequence = plan.chunks[i].sequence;
    const int32_t num_generated = sequence->num_generated_tokens();
    if (EndsWithNextToken(*sequence)) continue;
    const SamplingParams& params = sequence->request.sampling;
    const auto row = static_cast<size_t>(rows[i]);
    const bool host_draws = NeedsLogits(plan.chunks[i]) && !queued.has_draw(row);
    if (host_draws || AdjustsRow(params, num_generated) || AdjustsRow(params, num_generated + 1)) {
      return false;
    }
    plan_.chunks.push_back({.sequence = sequence,
                            .begin = plan.chunks[i].begin + plan.chunks[i].length,
                            .length = 1,
                            .num_logits = 1});
    pending_.push_back(queued.has_draw(row) ? PendingDraw(queued.draw_of_row[row])
                                            : PendingArgmax(rows[i]));
    rows_.push_back({sequence, sequence->arrival_index});
  }
  plan_.num_tokens = static_cast<int32_t>(plan_.chunks.size());
  return !plan_.chunks.empty();
}

void NextStep::SetTokens(const PendingTokens& tokens, int64_t vocab_size) {
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].token = TokenOf(pending_[i], tokens, vocab_size);
  }
}

// Plans keep their order but where a prompt has ended in between.
size_t NextStep::FindRow(const Sequence& sequence, size_t likely) const {
  for (size_t i = 0; i < rows_.size(); ++i) {
    const size_t row = (likely + i) % rows_.size();
    if (rows_[row].sequence == &sequence && rows_[row].arrival_index == sequence.arrival_index) {
      return row;
    }
  }
  return rows_.size();
}

bool NextStep::Serves(const StepPlan& plan, const Batch& wanted, const Batch& made,
                      std::vector<int32_t>* rows) const {
  rows->clear();
  if (!plan.block_copies.empty() || plan.chunks.empty()) return false;
  size_t row = 0;
  for (size_t i = 0; i < plan.chunks.size(); ++i, ++row) {
    const ScheduledChunk& chunk = plan.chunks[i];
    row = FindRow(*chunk.sequence, row);
    if (row == rows_.size() || !IsDecode(chunk) || rows_[row].token != wanted.token_ids[i] ||
        !SameRow(wanted, i, made, row, block_size_)) {
      return false;
    }
    rows->push_back(static_cast<int32_t>(row));
  }
  return true;
}

}  // namespace llm
