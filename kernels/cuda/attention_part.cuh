// What attention knows of some keys of a query's head: the largest score, the sum of exponentials
// and the weighted values relative to it. A warp holds one, dimension d in lane d % 32.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {

template <int kDims>
struct AttentionPart {
  float max;
  float sum;
  float values[kDims];  // dimensions lane, lane + 32, ...
};

__device__ __forceinline__ float MinusInfinity() { return __uint_as_float(0xff800000u); }

template <int kDims>
__device__ __forceinline__ void ClearPart(AttentionPart<kDims>* part) {
  part->max = MinusInfinity();
  part->sum = 0;
#pragma unroll
  for (int j = 0; j < kDims; ++j) part->values[j] = 0;
}

// `total` has the keys before those of `part`.
template <int kDims>
__device__ __forceinline__ void MergePart(const AttentionPart<kDims>& part,
                                          AttentionPart<kDims>* total) {
  const float max = fmaxf(total->max, part.max);
  const float before = expf(total->max - max);
  const float after = expf(part.max - max);
  total->max = max;
  total->sum = fmaf(total->sum, before, part.sum * after);
#pragma unroll
  for (int j = 0; j < kDims; ++j) {
    total->values[j] = fmaf(total->values[j], before, part.values[j] * after);
  }
}

__device__ __forceinline__ float* PartMemory(const AttentionArgs& args, int token, int head,
                                             int split) {
  const int64_t index = (int64_t{token} * args.num_heads + head) * args.num_splits + split;
  return args.partials + index * (args.kv.head_dim + 2);
}

template <int kDims>
__device__ __forceinline__ void StorePart(const AttentionArgs& args, int token, int head, int split,
                                          const AttentionPart<kDims>& part) {
  float* memory = PartMemory(args, token, head, split);
  if (Lane() == 0) {
    memory[0] = part.max;
    memory[1] = part.sum;
  }
#pragma unroll
  for (int j = 0; j < kDims; ++j) {
    const int d = j * kWarp + Lane();
    if (d < args.kv.head_dim) memory[2 + d] = part.values[j];
  }
}

template <int kDims>
__device__ __forceinline__ AttentionPart<kDims> LoadPart(const AttentionArgs& args, int token,
                                                         int head, int split) {
  const float* memory = PartMemory(args, token, head, split);
  AttentionPart<kDims> part;
  part.max = memory[0];
  part.sum = memory[1];
#pragma unroll
  for (int j = 0; j < kDims; ++j) {
    const int d = j * kWarp + Lane();
    part.values[j] = d < args.kv.head_dim ? memory[2 + d] : 0.0f;
  }
  return part;
}

// The head's output; a sink takes its share of the sum and gives nothing.
template <int kDims>
__device__ __forceinline__ void StoreMerged(const AttentionArgs& args, int token, int head,
                                            const AttentionPart<kDims>& total) {
  float factor = 1;
  float sum = total.sum;
  if (args.sinks != nullptr) {
    const float max = fmaxf(total.max, args.sinks[head]);
    factor = expf(total.max - max);
    sum = fmaf(sum, factor, expf(args.sinks[head] - max));
  }
  const int head_dim = args.kv.head_dim;
  float* out = args.out + (int64_t{token} * args.num_heads + head) * head_dim;
#pragma unroll
  for (int j = 0; j < kDims; ++j) {
    const int d = j * kWarp + Lane();
    if (d < head_dim) out[d] = total.values[j] * factor / sum;
  }
}

}  // namespace llm
