// Mixture of experts: which experts a token goes to, its rows in the order of experts, and the sum
// of what they give.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/activations.h"
#include "src/tensor/stream.h"

namespace llm {

enum class RouterScore : int32_t {
  kSoftmax = 0,  // over all experts
  kSigmoid = 1,
};

// Of one layer: num_experts experts, of which each token uses experts_per_token.
struct RouterRule {
  int num_experts = 0;
  int experts_per_token = 0;
  RouterScore score = RouterScore::kSoftmax;
  // Experts lie in num_groups equal runs; only those of the best groups_per_token runs are chosen
  // from. A run is as good as its best expert (kSoftmax) or its best two together (kSigmoid).
  int num_groups = 1;
  int groups_per_token = 1;
  bool normalize = false;  // weights are divided by their sum
  float scale = 1.0f;      // weights are multiplied with it
};

// The best experts of each token by score + selection_bias; ties go to the lowest index. Weights
// are scores without the bias. (Token, choice) pairs become rows: sorted by expert, then by token.
struct MoeRouteParams {
  RouterRule rule;
  const float* logits = nullptr;          // [tokens, num_experts]
  int64_t num_tokens = 0;                 // times experts_per_token fits 31 bits
  const float* selection_bias = nullptr;  // [num_experts] or null
  float* weights = nullptr;               // [tokens, experts_per_token], the best first
  int32_t* rows = nullptr;                // [tokens, experts_per_token]: the row of each choice
  int32_t* row_tokens = nullptr;          // [tokens * experts_per_token]: the token of each row
  int32_t* expert_begin = nullptr;  // [num_experts + 1]: expert e owns rows from [e] to [e + 1]
};
using MoeRouteFn = absl::Status (*)(const MoeRouteParams& params, const Stream& stream);

// Row i of the output is row row_tokens[i] of the input, in each form that the output has.
struct MoeGatherParams {
  Activations input;                     // [tokens, cols]
  absl::Span<const int32_t> row_tokens;  // [rows]
  Activations output;                    // [rows, cols]
};
using MoeGatherFn = absl::Status (*)(const MoeGatherParams& params, const Stream& stream);

// out[t] = sum over j of weights[t, j] * input[rows[t, j]], j ascending, plus `shared[t]` at the
// end.
struct MoeCombineParams {
  const float* input = nullptr;    // [num_rows, cols]
  int64_t num_rows = 0;            // num_tokens * experts_per_token
  const float* weights = nullptr;  // [tokens, experts_per_token]
  const int32_t* rows = nullptr;   // [tokens, experts_per_token]; INVALID_ARGUMENT outside num_rows
  int experts_per_token = 0;
  const float* shared = nullptr;  // [tokens, cols] or null; may be `out`
  float* out = nullptr;           // [tokens, cols]
  int64_t num_tokens = 0;
  int64_t cols = 0;
};
using MoeCombineFn = absl::Status (*)(const MoeCombineParams& params, const Stream& stream);

}  // namespace llm
