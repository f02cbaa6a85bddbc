// Edits are collected anew each step: a device that kept counts of each sequence's ids would have
// to follow every preemption and rollback, for a copy that is small beside the row.
#include "src/runner/draw_builder.h"

#include <algorithm>
#include <cmath>

#include "kernels/sample_math.h"

namespace llm {
namespace {

constexpr int64_t kMaxEdits = 1 << 16;

int MaxRowEdits(int vocab_size) {
  return vocab_size / static_cast<int>(sizeof(LogitEdit) / sizeof(float));
}

RowDraw DrawOf(const ScheduledChunk& chunk, size_t row) {
  const SamplingParams& params = chunk.sequence->request.sampling;
  RowDraw draw;
  draw.seed = params.seed;
  draw.position = chunk.begin + chunk.length;
  draw.row = static_cast<int32_t>(row);
  draw.num_top = std::max(0, params.num_logprobs);
  draw.temperature = params.temperature;
  draw.top_k = params.top_k;
  draw.top_p = params.top_p;
  if (params.min_p > 0.0f) draw.log_min_p = std::log(std::min(params.min_p, 1.0f));
  return draw;
}

}  // namespace

int DrawShape::max_edits() const {
  const int64_t of_rows = int64_t{max_sequences} * MaxRowEdits(vocab_size);
  return static_cast<int>(std::min(of_rows, kMaxEdits));
}

size_t DrawBuilder::ArrayBytes(const DrawShape& shape) {
  Arena counting(nullptr);
  counting.Take<RowDraw>(shape.max_sequences);
  counting.Take<LogitEdit>(shape.max_edits());
  return counting.peak_bytes();
}

DrawBuilder::DrawBuilder(const DrawShape& shape, Arena* arena)
    : shape_(shape),
      rows_(arena->Take<RowDraw>(shape.max_sequences)),
      edits_(arena->Take<LogitEdit>(shape.max_edits())),
      of_row_(arena->Take<int32_t>(shape.max_logit_rows)),
      row_edits_(shape.vocab_size) {}

StepDraws DrawBuilder::Build(const StepPlan& plan) {
  num_rows_ = num_edits_ = 0;
  StepDraws draws;
  size_t row = 0;
  for (const ScheduledChunk& chunk : plan.chunks) {
    const auto rows = static_cast<size_t>(chunk.num_logits);
    std::fill_n(of_row_ + row, rows, -1);
    // Of a score, rows are asked for as they are.
    if (NeedsLogits(chunk) && rows == 1 && chunk.sequence->score_begin < 0 && Add(chunk, row)) {
      draws.max_top = std::max(draws.max_top, rows_[num_rows_].num_top);
      of_row_[row] = static_cast<int32_t>(num_rows_++);
    }
    row += rows;
  }
  draws.rows = {rows_, num_rows_};
  draws.edits = {edits_, num_edits_};
  draws.of_row = {of_row_, row};
  return draws;
}

bool DrawBuilder::Add(const ScheduledChunk& chunk, size_t row) {
  const Sequence& sequence = *chunk.sequence;
  RowDraw draw = DrawOf(chunk, row);
  if (shape_.vocab_size > kMaxDrawCols || draw.num_top > kMaxTopLogprobs ||
      num_rows_ == static_cast<size_t>(shape_.max_sequences)) {
    return false;
  }
  draw.edits_begin = draw.edits_end = static_cast<int32_t>(num_edits_);
  if (AdjustsRow(sequence.request.sampling, sequence.num_generated_tokens())) {
    row_edits_.Collect(sequence.request, sequence.tokens);
    const absl::Span<const LogitEdit> edits = row_edits_.edits();
    if (edits.size() > static_cast<size_t>(MaxRowEdits(shape_.vocab_size)) ||
        edits.size() > static_cast<size_t>(shape_.max_edits()) - num_edits_) {
      return false;
    }
    std::copy(edits.begin(), edits.end(), edits_ + num_edits_);
    num_edits_ += edits.size();
    draw.edits_end = static_cast<int32_t>(num_edits_);
  }
  rows_[num_rows_] = draw;
  return true;
}

}  // namespace llm
