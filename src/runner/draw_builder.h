// Which rows of a step a device draws from by itself, and what it is told for that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/row_draw.h"
#include "src/model/arena.h"
#include "src/sampling/logit_edits.h"
#include "src/scheduler/step_plan.h"

namespace llm {

struct DrawShape {
  int max_sequences = 0;
  int max_logit_rows = 0;
  int vocab_size = 0;

  // Of all rows of a step. A row whose edits (16 bytes each) are more bytes than the row goes to
  // the host instead, and so does one that finds no place left: 65,536 edits are 1 MiB.
  int max_edits() const;
};

struct StepDraws {
  absl::Span<const RowDraw> rows;
  absl::Span<const LogitEdit> edits;
  absl::Span<const int32_t> of_row;  // [logit rows]: its index in `rows`; -1: the host's
  int32_t max_top = 0;               // the most likely ids that any row names

  bool has(size_t row) const { return row < of_row.size() && of_row[row] >= 0; }
};

class DrawBuilder {
 public:
  // Bytes of what a step copies to the device, each array at a multiple of 64.
  static size_t ArrayBytes(const DrawShape& shape);

  // Takes the arrays from `arena`, whose memory outlives the builder.
  DrawBuilder(const DrawShape& shape, Arena* arena);

  // The spans are valid until the next Build. REQUIRES: BatchBuilder takes the plan.
  StepDraws Build(const StepPlan& plan);

 private:
  // False: the row is the host's.
  bool Add(const ScheduledChunk& chunk, size_t row);

  const DrawShape shape_;
  RowDraw* rows_;     // [max_sequences]
  LogitEdit* edits_;  // [max_edits]
  int32_t* of_row_;   // [max_logit_rows]
  size_t num_rows_ = 0;
  size_t num_edits_ = 0;
  LogitEdits row_edits_;
};

}  // namespace llm
