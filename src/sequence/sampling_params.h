// How the next token is chosen. Pure data.
#pragma once

#include <cstdint>
#include <vector>

namespace llm {

struct LogitBias {
  int32_t id = 0;
  float bias = 0.0f;
};

struct SamplingParams {
  float temperature = 0.0f;  // 0: greedy
  int32_t top_k = 0;         // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off; keeps ids with p >= min_p * max p
  uint64_t seed = 0;
  float repetition_penalty = 1.0f;  // > 0, over prompt and output; 1: off
  float presence_penalty = 0.0f;    // over the output
  float frequency_penalty = 0.0f;   // likewise, each time
  std::vector<LogitBias> logit_bias;
  std::vector<std::vector<int32_t>> bad_words;  // each not empty: ids that never follow each other
  int32_t min_new_tokens = 0;                   // no end or stop token before
  int32_t num_logprobs = -1;  // -1: none; k >= 0: the chosen id's and the k most likely ones' (of
                              // the unmodified distribution)
};

// Whether the model's logits are changed before a token is drawn, after so many generated ones.
inline bool AdjustsRow(const SamplingParams& params, int32_t num_generated) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
         params.frequency_penalty != 0.0f || !params.logit_bias.empty() ||
         !params.bad_words.empty() || num_generated < params.min_new_tokens;
}

}  // namespace llm
