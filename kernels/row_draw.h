// What `sample` is told of a row, and gives back. Plain data: the host uploads it, device code
// reads it.
#pragma once

#include <cstdint>

namespace llm {

struct TokenLogprob {
  int32_t id = 0;
  float logprob = 0;
};

// One id's logit changes: bias, repetition penalty, then the penalty for being there already.
struct alignas(16) LogitEdit {
  int32_t id = 0;
  float bias = 0;        // -infinity: the id cannot be drawn
  float repetition = 1;  // positive logits are divided by it, others multiplied
  float penalty = 0;     // taken off

  constexpr float operator()(float logit) const {
    logit += bias;
    logit = logit > 0.0f ? logit / repetition : logit * repetition;
    return logit - penalty;
  }
};

inline constexpr int kMaxTopLogprobs = 20;

struct RowDraw {
  uint64_t seed = 0;
  int64_t position = 0;
  int32_t row = 0;
  int32_t edits_begin = 0;
  int32_t edits_end = 0;
  int32_t num_top = 0;                  // most likely ids to name; at most kMaxTopLogprobs
  float temperature = 0;                // 0: the largest logit
  int32_t top_k = 0;                    // 0: off
  float top_p = 1;                      // 1: off
  float log_min_p = -__builtin_inff();  // -infinity: off
};

// In place of a drawn id.
enum DrawFailure : int32_t {
  kLogitsNotFinite = -1,
  kNothingToDraw = -2,  // the edits leave no id
};

}  // namespace llm
