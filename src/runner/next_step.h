// The step behind one that is on the device: what decodes goes on by a token that only the device
// knows yet. It can begin before the host has looked at the step before; whether the scheduler then
// asks for it is found out by comparing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/pending_tokens.h"
#include "src/model/batch.h"
#include "src/scheduler/step_plan.h"

namespace llm {

// A step that a device's stream has, and what its results are read by.
struct QueuedStep {
  size_t num_rows = 0;    // of logits
  size_t num_hidden = 0;  // of hidden states
  // [num_rows]: its draw; -1: none. Empty: there are no draws.
  std::vector<int32_t> draw_of_row;
  int32_t max_top = 0;  // as of StepDraws
  int mark = 0;         // of its end on the stream; names its part of the host's results too

  bool has_draw(size_t row) const { return row < draw_of_row.size() && draw_of_row[row] >= 0; }
};

class NextStep {
 public:
  // Room for steps of so many sequences.
  NextStep(int max_sequences, int block_size);

  // The plan behind `plan`, whose chunk i ends in row rows[i] of `queued`. False: it cannot be
  // told, since what becomes of the row's logits depends on the token before. REQUIRES:
  // plan.looks_ahead.
  bool Follow(const StepPlan& plan, const QueuedStep& queued, absl::Span<const int32_t> rows);
  const StepPlan& plan() const { return plan_; }
  absl::Span<const int32_t> pending() const { return pending_; }  // [chunks]

  // The step before has ended: its tokens, as the host has them.
  void SetTokens(const PendingTokens& tokens, int64_t vocab_size);

  // Whether `wanted`, the batch of `plan`, is made of rows of `made`, which is this step's: the
  // same sequences, tokens, positions, slots and blocks. rows[i] is then chunk i's.
  bool Serves(const StepPlan& plan, const Batch& wanted, const Batch& made,
              std::vector<int32_t>* rows) const;

 private:
  // Of the sequence; looked for from `likely` on. rows_.size(): none.
  size_t FindRow(const Sequence& sequence, size_t likely) const;

  struct Row {
    const Sequence* sequence = nullptr;
    uint64_t arrival_index = 0;  // the next one may lie at the same address
    int32_t token = -1;
  };

  const int block_size_;
  StepPlan plan_;
  std::vector<int32_t> pending_;
  std::vector<Row> rows_;
};

}  // namespace llm
