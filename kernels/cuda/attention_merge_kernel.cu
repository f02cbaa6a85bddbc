// Merges the parts that blocks of attention have left for each split, in ascending order: a block a
// row, a thread every 128th dimension.
#include "kernels/cuda/attention_part.cuh"
#include "kernels/cuda/launch.cuh"

namespace llm {
namespace {

constexpr int kMergeThreads = 128;

__global__ void __launch_bounds__(kMergeThreads) attention_merge_kernel(const AttentionArgs args) {
  const int token = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  if (token >= args.query_start[args.num_sequences]) return;
  // Sequences without queries begin where the next one does: the last of them owns the token.
  const int sequence = FindSequence(args, token, [&](int s) { return args.query_start[s]; });
  const int end_key = args.context_lens[sequence] - (args.query_start[sequence + 1] - token) + 1;
  const int first_key = FirstKey(args, end_key);
  const int head_dim = args.kv.head_dim;
  float* out = args.out + (int64_t{token} * args.num_heads + head) * head_dim;
  const int first = first_key / kSplitKeys;
  for (int d = static_cast<int>(threadIdx.x); d < head_dim; d += kMergeThreads) {
    const float* memory = PartMemory(args, token, head, first);
    PartSums total = {memory[head_dim], memory[head_dim + 1]};
    float value = memory[d];
#pragma unroll 4
    for (int split = first + 1; split * kSplitKeys < end_key; ++split) {
      memory = PartMemory(args, token, head, split);
      const MergeFactors factors = MergeSums({memory[head_dim], memory[head_dim + 1]}, &total);
      value = MergeValue(factors, value, memory[d]);
    }
    out[d] = value * ShareOf(args.sinks, head, total);
  }
}

cudaError_t LaunchParts(const AttentionArgs& args, LaunchStream stream) {
  switch (args.kv.dtype) {
    case DType::kF32:
      return LaunchAttentionF32(args, stream);
    case DType::kF16:
      return LaunchAttentionF16(args, stream);
    case DType::kBF16:
      return LaunchAttentionBF16(args, stream);
    case DType::kF8E4M3:
      return LaunchAttentionF8E4M3(args, stream);
    case DType::kI8:
      return LaunchAttentionI8(args, stream);
    case DType::kI4:
      return LaunchAttentionI4(args, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t LaunchAttention(const AttentionArgs& args, LaunchStream stream) {
  const cudaError_t error = LaunchParts(args, stream);
  if (error != cudaSuccess || args.partials == nullptr) return error;
  const dim3 grid(static_cast<unsigned>(args.num_tokens), static_cast<unsigned>(args.num_heads));
  return Launch(attention_merge_kernel, {grid, dim3(kMergeThreads)}, stream, args);
}

}  // namespace llm
