// A device's steps: each is waited for when it is asked for, and the next one may be on the stream
// by then.
#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "src/base/dcheck.h"
#include "src/base/nvtx.h"
#include "src/base/status_macros.h"
#include "src/runner/model_runner.h"

namespace llm {

absl::StatusOr<StepLogits> ModelRunner::ExecuteOnDevice(const StepPlan& plan) {
  const bool was_ahead = is_ahead();
  const int before = last_.mark;
  const bool is_queued = TakeAhead(plan);
  absl::Status status = is_queued ? absl::OkStatus() : QueuePlan(plan);
  if (status.ok() && plan.looks_ahead && next_ != nullptr) RunAhead(plan);
  if (status.ok()) status = device_stream_->WaitFor(last_.mark);
  if (!status.ok()) {
    ahead_.reset();
    // The next step begins with nothing on its way. A device that cannot even say so is lost.
    if (!device_stream_->Wait().ok()) device_status_ = status;
    return status;
  }
  const StepResults& results = host_results_[last_.mark];
  if (ahead_) next_->SetTokens(TokensOf(results.measures), model_.config.vocab_size);
  if (is_queued) KeepRows(results.measures);
  StepLogits logits = ResultsOf(results, last_);
  // A step behind one that is dropped may have come long after it, or have waited for it.
  if (was_ahead) logits.device_ns = StepLogits::kNotMeasured;
  if (is_queued) {
    logits.device_ns =
        device_stream_->NsBetween(before, last_.mark).value_or(StepLogits::kNotMeasured);
  }
  return logits;
}

bool ModelRunner::TakeAhead(const StepPlan& plan) {
  if (!ahead_) return false;
  QueuedStep step = *std::move(ahead_);
  ahead_.reset();
  const absl::StatusOr<Batch> wanted = wanted_builder_->Build(plan);
  if (!wanted.ok() || !next_->Serves(plan, *wanted, queued_batch_, &rows_)) {
    ++ahead_counters_.dropped_total;
    return false;
  }
  ++ahead_counters_.steps_total;
  last_ = std::move(step);
  return true;
}

absl::Status ModelRunner::QueuePlan(const StepPlan& plan) {
  LLM_ASSIGN_OR_RETURN(last_, Queue(plan, {}));
  rows_.resize(plan.chunks.size());
  std::iota(rows_.begin(), rows_.end(), 0);  // where it looks ahead: a row a chunk
  return absl::OkStatus();
}

void ModelRunner::RunAhead(const StepPlan& plan) {
  try {
    if (!next_->Follow(plan, last_, rows_)) return;
    const NvtxRange range("run ahead");
    absl::StatusOr<QueuedStep> step = Queue(next_->plan(), next_->pending());
    if (step.ok()) ahead_ = *std::move(step);
  } catch (const std::bad_alloc&) {  // what is on the stream is nobody's
  }
  if (!ahead_) ++ahead_counters_.failures_total;
}

absl::StatusOr<QueuedStep> ModelRunner::Queue(const StepPlan& plan,
                                              absl::Span<const int32_t> pending) {
  const int mark = NextMark();
  const std::optional<GraphBucket> bucket =
      graphs_ != nullptr ? graphs_->BucketOf(plan) : std::nullopt;
  LLM_ASSIGN_OR_RETURN(Batch batch,
                       batch_builder_->Build(plan, bucket ? &bucket->padding : nullptr, pending));
  if (next_ != nullptr) batch.pending = TokensOf(results_.measures);
  LLM_RETURN_IF_ERROR(device_stream_->Begin(/*ahead=*/!pending.empty()));
  LLM_RETURN_IF_ERROR(Run(plan, batch, bucket ? &*bucket : nullptr));
  if (bucket) batch.logit_rows = batch.logit_rows.first(plan.chunks.size());
  const StepDraws draws = draw_builder_->Build(plan);  // while the device works
  LLM_RETURN_IF_ERROR(DrawRows(static_cast<int64_t>(batch.logit_rows.size()), draws));
  // Of a step that runs ahead the device draws what it drew in the step before: the host asks for
  // no row.
  LLM_DCHECK(pending.empty() || std::all_of(plan.chunks.begin(), plan.chunks.end(),
                                            [&, row = size_t{0}](const auto& chunk) mutable {
                                              return draws.has(row++) || !NeedsLogits(chunk);
                                            }));
  LLM_RETURN_IF_ERROR(FetchResults(plan, batch, draws, model_.config, results_, host_results_[mark],
                                   device_stream_.get()));
  LLM_RETURN_IF_ERROR(device_stream_->Mark(mark));
  queued_mark_ = mark;
  queued_batch_ = batch;
  return QueuedStep{.num_rows = batch.logit_rows.size(),
                    .num_hidden = batch.hidden_rows.size(),
                    .draw_of_row = {draws.of_row.begin(), draws.of_row.end()},
                    .max_top = draws.max_top,
                    .mark = mark};
}

absl::Status ModelRunner::DrawRows(int64_t rows, const StepDraws& draws) {
  if (draws.rows.empty()) return absl::OkStatus();
  const NvtxRange range("sample");
  return model_.kernels->sample({.logits = results_.logits,
                                 .rows = rows,
                                 .cols = model_.config.vocab_size,
                                 .argmax = results_.measures.argmax,
                                 .max = results_.measures.max,
                                 .log_sum_exp = results_.measures.log_sum_exp,
                                 .draws = draws.rows,
                                 .edits = draws.edits,
                                 .originals = edited_logits_,
                                 .drawn = results_.measures.drawn,
                                 .top = results_.measures.top,
                                 .max_top = draws.max_top},
                                stream_);
}

PendingTokens ModelRunner::TokensOf(const RowMeasures& measures) {
  return {.argmax = measures.argmax,
          .drawn = measures.drawn,
          .num_rows = measures.max_rows,
          .num_draws = measures.max_draws};
}

void ModelRunner::KeepRows(const RowMeasures& measures) {
  const auto keep = [this](auto* values, auto* scratch) {
    for (size_t i = 0; i < rows_.size(); ++i) scratch[i] = values[rows_[i]];
    std::copy_n(scratch, rows_.size(), values);
  };
  keep(measures.argmax, kept_ids_.data());
  keep(measures.max, kept_values_.data());
  keep(measures.log_sum_exp, kept_values_.data());
  if (!last_.draw_of_row.empty()) keep(last_.draw_of_row.data(), kept_ids_.data());
  last_.num_rows = rows_.size();
  if (!last_.draw_of_row.empty()) last_.draw_of_row.resize(rows_.size());
}

}  // namespace llm
