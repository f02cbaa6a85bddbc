// What the launchers of experts' ops hand to their kernels; terms as in device_ops.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/activations.h"
#include "kernels/cuda/launch_stream.h"

namespace llm {

struct MoeRouteArgs {
  const float* logits;          // [tokens, num_experts]
  const float* selection_bias;  // [num_experts] or null
  int64_t num_tokens;
  int num_experts;
  int experts_per_token;
  bool sigmoid;  // scores; else softmax
  int num_groups;
  int groups_per_token;
  bool normalize;
  float scale;
  float* weights;         // [tokens, experts_per_token]
  int32_t* rows;          // [tokens, experts_per_token]
  int32_t* row_tokens;    // [tokens * experts_per_token]
  int32_t* expert_begin;  // [num_experts + 1]
};
cudaError_t LaunchMoeRoute(const MoeRouteArgs& args, LaunchStream stream);
// Its part once `rows` has the experts that were chosen.
cudaError_t LaunchMoeSort(const MoeRouteArgs& args, LaunchStream stream);

struct MoeGatherArgs {
  Activations input;
  const int32_t* row_tokens;  // [output.rows]
  Activations output;
};
cudaError_t LaunchMoeGather(const MoeGatherArgs& args, LaunchStream stream);

struct MoeCombineArgs {
  const float* input;
  const float* weights;
  const int32_t* rows;
  int experts_per_token;
  const float* shared;
  float* out;
  int64_t num_tokens;
  int64_t cols;
};
cudaError_t LaunchMoeCombine(const MoeCombineArgs& args, LaunchStream stream);

struct ReorderArgs {
  const float* from;
  const float* order;  // [num_orders, cols]
  float* to;
  int64_t rows;
  int64_t cols;
  const int32_t* begin;  // [num_orders + 1]: the rows of each order; null: there is one
  int num_orders;
};
cudaError_t LaunchReorder(const ReorderArgs& args, LaunchStream stream);

}  // namespace llm
