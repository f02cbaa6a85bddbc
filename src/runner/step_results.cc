// Rows of logits are large and most of them are not looked at: those that the device takes a token
// from stay.
#include "src/runner/step_results.h"

#include "src/base/status_macros.h"

namespace llm {
namespace {

// Rows [begin, end) of an array of `cols`.
absl::Status FetchRows(const float* from, float* to, size_t begin, size_t end, size_t cols,
                       DeviceStream* stream) {
  if (begin == end) return absl::OkStatus();
  return stream->CopyOut(to + begin * cols, from + begin * cols,
                         (end - begin) * cols * sizeof(float));
}

// Of the arrays of RowMeasures, from the first on to the last that the step has filled.
size_t MeasureBytes(const RowMeasures& measures, const StepDraws& draws) {
  if (draws.rows.empty()) return measures.bytes;
  const auto begin = reinterpret_cast<uintptr_t>(measures.argmax);
  if (draws.max_top == 0) {
    return reinterpret_cast<uintptr_t>(measures.drawn + draws.rows.size()) - begin;
  }
  const size_t top = draws.rows.size() * static_cast<size_t>(draws.max_top);
  return reinterpret_cast<uintptr_t>(measures.top + top) - begin;
}

}  // namespace

RowMeasures TakeMeasures(int max_logit_rows, int max_draws, Arena* arena) {
  const size_t begin = arena->Mark();
  RowMeasures measures = {.max_rows = max_logit_rows, .max_draws = max_draws};
  measures.argmax = arena->Take<int32_t>(max_logit_rows);
  measures.max = arena->Take<float>(max_logit_rows);
  measures.log_sum_exp = arena->Take<float>(max_logit_rows);
  measures.bytes = arena->Mark() - begin;
  measures.drawn = arena->Take<TokenLogprob>(max_draws);
  measures.top = arena->Take<TokenLogprob>(int64_t{max_draws} * kMaxTopLogprobs);
  return measures;
}

absl::Status FetchResults(const StepPlan& plan, const Batch& batch, const StepDraws& draws,
                          const ModelConfig& config, const StepResults& from, const StepResults& to,
                          DeviceStream* stream) {
  const size_t num_logits = batch.logit_rows.size();
  if (num_logits > 0) {
    LLM_RETURN_IF_ERROR(stream->CopyOut(to.measures.argmax, from.measures.argmax,
                                        MeasureBytes(from.measures, draws)));
  }
  const auto vocab_size = static_cast<size_t>(config.vocab_size);
  size_t begin = 0;  // of the run of rows that are wanted
  size_t row = 0;
  for (const ScheduledChunk& chunk : plan.chunks) {
    const auto rows = static_cast<size_t>(chunk.num_logits);
    if (!NeedsLogits(chunk) || draws.has(row)) {
      LLM_RETURN_IF_ERROR(FetchRows(from.logits, to.logits, begin, row, vocab_size, stream));
      begin = row + rows;
    }
    row += rows;
  }
  LLM_RETURN_IF_ERROR(FetchRows(from.logits, to.logits, begin, row, vocab_size, stream));
  return FetchRows(from.hidden, to.hidden, num_logits, num_logits + batch.hidden_rows.size(),
                   static_cast<size_t>(config.hidden_size), stream);
}

}  // namespace llm
