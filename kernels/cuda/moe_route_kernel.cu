// Choices of experts, a warp a token. Scores are doubles, as the reference's: two experts that are
// close must come out in the same order.
#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kTokens = 4;  // warps of a block
constexpr int kThreads = kTokens * kWarp;

// Of one token, in shared memory.
struct Token {
  double* scores;   // [num_experts]
  double* choice;   // [num_experts]: with the bias
  double* groups;   // [num_groups]
  uint8_t* taken;   // [num_experts]
  uint8_t* closed;  // [num_groups]
};

__device__ __host__ __forceinline__ int TokenBytes(int num_experts, int num_groups) {
  const int doubles = 2 * num_experts + num_groups;
  return doubles * static_cast<int>(sizeof(double)) + (num_experts + num_groups + 7) / 8 * 8;
}

__device__ __forceinline__ Token ViewToken(int num_experts, int num_groups) {
  unsigned char* memory =
      DynamicShared<unsigned char>() + WarpIndex() * TokenBytes(num_experts, num_groups);
  double* scores = reinterpret_cast<double*>(memory);
  double* choice = scores + num_experts;
  double* groups = choice + num_experts;
  uint8_t* taken = reinterpret_cast<uint8_t*>(groups + num_groups);
  return {scores, choice, groups, taken, taken + num_experts};
}

__device__ __forceinline__ double SumOfLanes(double x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(kAllLanes, x, offset);
  return x;
}

__device__ __forceinline__ double LargestOfLanes(double x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const double other = __shfl_xor_sync(kAllLanes, x, offset);
    if (other > x) x = other;
  }
  return x;
}

__device__ __forceinline__ void ComputeScores(const MoeRouteArgs& args, const float* logits,
                                              double* scores) {
  if (args.sigmoid) {
    for (int e = Lane(); e < args.num_experts; e += kWarp) {
      scores[e] = 1 / (1 + exp(-static_cast<double>(logits[e])));
    }
    return;
  }
  double max = static_cast<double>(logits[0]);
  for (int e = Lane(); e < args.num_experts; e += kWarp) {
    if (static_cast<double>(logits[e]) > max) max = static_cast<double>(logits[e]);
  }
  max = LargestOfLanes(max);
  double sum = 0;
  for (int e = Lane(); e < args.num_experts; e += kWarp) {
    scores[e] = exp(static_cast<double>(logits[e]) - max);
    sum += scores[e];
  }
  sum = SumOfLanes(sum);
  for (int e = Lane(); e < args.num_experts; e += kWarp) scores[e] /= sum;
}

// The largest that is not taken, of equal ones the first; NaN loses to nothing and nothing to it.
// Every lane has the index.
__device__ __forceinline__ int Best(const double* values, const uint8_t* taken, int count) {
  int best = -1;
  double value = 0;
  for (int i = Lane(); i < count; i += kWarp) {
    if (taken[i] != 0 || (best >= 0 && !(values[i] > value))) continue;
    best = i;
    value = values[i];
  }
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const int other = __shfl_xor_sync(kAllLanes, best, offset);
    const double other_value = __shfl_xor_sync(kAllLanes, value, offset);
    if (other < 0) continue;
    if (best >= 0 && !(other_value > value) && (value > other_value || best < other)) continue;
    best = other;
    value = other_value;
  }
  return best;
}

__device__ __forceinline__ double GroupScore(const double* choice, int size, bool two) {
  double first = choice[0];
  double second = -static_cast<double>(__uint_as_float(0x7f800000u));
  for (int i = 1; i < size; ++i) {
    const double lower = choice[i] < first ? choice[i] : first;
    if (lower > second) second = lower;
    if (choice[i] > first) first = choice[i];
  }
  return two && size > 1 ? first + second : first;
}

// Marks the experts outside of the best groups as taken.
__device__ __forceinline__ void LimitToGroups(const MoeRouteArgs& args, const Token& token) {
  const int size = args.num_experts / args.num_groups;
  for (int g = Lane(); g < args.num_groups; g += kWarp) {
    token.groups[g] = GroupScore(token.choice + g * size, size, args.sigmoid);
    token.closed[g] = 0;
  }
  __syncwarp();
  for (int i = 0; i < args.groups_per_token; ++i) {
    const int best = Best(token.groups, token.closed, args.num_groups);
    __syncwarp();
    if (Lane() == 0) token.closed[best] = 1;  // for Best: not to be chosen again
    __syncwarp();
  }
  for (int e = Lane(); e < args.num_experts; e += kWarp) {
    token.taken[e] = token.closed[e / size] == 0;
  }
  __syncwarp();
}

// Writes the token's weights, and its experts in the place of rows.
__global__ void __launch_bounds__(kThreads) moe_choose_kernel(const MoeRouteArgs args) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kTokens + WarpIndex();
  if (index >= args.num_tokens) return;  // a whole warp
  const Token token = ViewToken(args.num_experts, args.num_groups);
  ComputeScores(args, args.logits + index * args.num_experts, token.scores);
  for (int e = Lane(); e < args.num_experts; e += kWarp) {
    const float* bias = args.selection_bias;
    token.choice[e] = token.scores[e] + (bias != nullptr ? static_cast<double>(bias[e]) : 0.0);
    token.taken[e] = 0;
  }
  __syncwarp();
  if (args.groups_per_token < args.num_groups) LimitToGroups(args, token);
  float* weights = args.weights + index * args.experts_per_token;
  int32_t* experts = args.rows + index * args.experts_per_token;
  double sum = 0;
  for (int j = 0; j < args.experts_per_token; ++j) {
    const int best = Best(token.choice, token.taken, args.num_experts);
    sum += token.scores[best];
    __syncwarp();
    if (Lane() == 0) {
      token.taken[best] = 1;
      experts[j] = best;
    }
    __syncwarp();
  }
  const double factor = static_cast<double>(args.scale) / (args.normalize ? sum + 1e-20 : 1.0);
  for (int j = Lane(); j < args.experts_per_token; j += kWarp) {
    weights[j] = static_cast<float>(token.scores[experts[j]] * factor);
  }
}

unsigned Blocks(int64_t count, int size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

}  // namespace

cudaError_t LaunchMoeRoute(const MoeRouteArgs& args, LaunchStream stream) {
  const auto shared_bytes =
      static_cast<size_t>(kTokens * TokenBytes(args.num_experts, args.num_groups));
  const cudaError_t error =
      Launch(moe_choose_kernel,
             {dim3(Blocks(args.num_tokens, kTokens)), dim3(kThreads), shared_bytes}, stream, args);
  if (error != cudaSuccess) return error;
  return LaunchMoeSort(args, stream);
}

}  // namespace llm
