// What the host reads of a step, in the memory that kernels write or in copies of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/row_draw.h"
#include "src/model/arena.h"
#include "src/model/batch.h"
#include "src/model/model_config.h"
#include "src/runner/draw_builder.h"
#include "src/scheduler/step_plan.h"
#include "src/tensor/device.h"

namespace llm {

// Arrays that lie one after the other, so that one copy brings all: what row_stats and sample
// write.
struct RowMeasures {
  int32_t* argmax = nullptr;      // [max_logit_rows]
  float* max = nullptr;           // [max_logit_rows]
  float* log_sum_exp = nullptr;   // [max_logit_rows]
  size_t bytes = 0;               // of these three
  TokenLogprob* drawn = nullptr;  // [max_draws]
  TokenLogprob* top = nullptr;    // [max_draws, kMaxTopLogprobs]
  int32_t max_rows = 0;           // max_logit_rows
  int32_t max_draws = 0;
};
RowMeasures TakeMeasures(int max_logit_rows, int max_draws, Arena* arena);

struct StepResults {
  RowMeasures measures;
  float* hidden = nullptr;  // [logit rows, then hidden rows; hidden_size]
  float* logits = nullptr;  // [max_logit_rows, vocab_size]
};

// Puts copies of what the host wants on the stream: measures of all rows and what was drawn in one,
// the logits of rows that NeedsLogits names and `draws` does not, hidden states. They are there
// when the stream has been waited for. Rows keep their places.
absl::Status FetchResults(const StepPlan& plan, const Batch& batch, const StepDraws& draws,
                          const ModelConfig& config, const StepResults& from, const StepResults& to,
                          DeviceStream* stream);

}  // namespace llm
