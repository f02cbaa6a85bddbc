// What attention knows of a row's keys: the largest score, the sum of exponentials and the weighted
// values relative to it. A part is that of one split; parts are merged in ascending order.
#pragma once

#include <cmath>

#include "kernels/cuda/attention_values.cuh"

namespace llm {

struct PartSums {
  float max;
  float sum;
};

// What the values of both are to be multiplied by when they are added.
struct MergeFactors {
  float before;
  float after;
};

// `total` has the keys before those of `part`, some at least.
__device__ __forceinline__ MergeFactors MergeSums(const PartSums& part, PartSums* total) {
  const float max = fmaxf(total->max, part.max);
  const MergeFactors factors = {expf(total->max - max), expf(part.max - max)};
  *total = {max, fmaf(total->sum, factors.before, part.sum * factors.after)};
  return factors;
}
__device__ __forceinline__ float MergeValue(const MergeFactors& factors, float total, float part) {
  return fmaf(total, factors.before, part * factors.after);
}

// What the weighted values are to be multiplied by; a sink takes its share of the sum and gives
// nothing.
__device__ __forceinline__ float ShareOf(const float* sinks, int head, const PartSums& total) {
  if (sinks == nullptr) return 1.0f / total.sum;
  const float max = fmaxf(total.max, sinks[head]);
  const float factor = expf(total.max - max);
  return factor / fmaf(total.sum, factor, expf(sinks[head] - max));
}

// A part in args.partials: its values, then maximum and sum, then nothing up to 16 bytes.
__device__ __forceinline__ float* PartMemory(const AttentionArgs& args, int token, int head,
                                             int split) {
  const int64_t index = (int64_t{token} * args.num_heads + head) * args.num_splits + split;
  return args.partials + index * AttentionPartFloats(args.kv.head_dim);
}

// Calls visit(where, values) with four neighbouring dimensions of the lane's row `r` at a time.
template <int kSlices, int kGroups, typename Visit>
__device__ __forceinline__ void VisitValues(const KvArgs& kv, int slice, int r,
                                            AttentionState<kGroups>& state, const Visit& visit) {
#pragma unroll
  for (int j = 0; j < kGroups; ++j) {
    const int group = j * kSlices + slice;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int dim = group * kKvGroup + Lane() % 4 * 8 + 4 * h;
      if (dim >= kv.head_dim) continue;
      visit(dim, float4{state.values[j][0][2 * r + h], state.values[j][1][2 * r + h],
                        state.values[j][2][2 * r + h], state.values[j][3][2 * r + h]});
    }
  }
}

template <int kSlices, int kGroups>
__device__ __forceinline__ void StorePart(const AttentionArgs& args, const AttentionRow& row,
                                          int split, int slice, int r, const PartSums& part,
                                          AttentionState<kGroups>& state) {
  float* memory = PartMemory(args, row.token, row.head, split);
  if (slice == 0 && Lane() % 4 == 0) {
    memory[args.kv.head_dim] = part.max;
    memory[args.kv.head_dim + 1] = part.sum;
  }
  VisitValues<kSlices>(args.kv, slice, r, state, [&](int dim, const float4& values) {
    *reinterpret_cast<float4*>(memory + dim) = values;
  });
}

// Adds a part to what the splits before have left in the output, which the last one completes.
template <int kSlices, int kGroups>
__device__ __forceinline__ void MergeIntoOutput(const AttentionArgs& args, const AttentionRow& row,
                                                int split, int slice, int r, const PartSums& part,
                                                PartSums* total, AttentionState<kGroups>& state) {
  const bool first = row.first_key / kSplitKeys == split;
  const bool last = (row.end_key - 1) / kSplitKeys == split;
  MergeFactors factors = {0, 1};
  if (first) {
    *total = part;
  } else {
    factors = MergeSums(part, total);
  }
  const float share = last ? ShareOf(args.sinks, row.head, *total) : 1.0f;
  float* out = args.out + (int64_t{row.token} * args.num_heads + row.head) * args.kv.head_dim;
  VisitValues<kSlices>(args.kv, slice, r, state, [&](int dim, const float4& values) {
    float4* at = reinterpret_cast<float4*>(out + dim);
    float4 merged = values;
    if (!first) {
      const float4 before = *at;
      merged = {MergeValue(factors, before.x, merged.x), MergeValue(factors, before.y, merged.y),
                MergeValue(factors, before.z, merged.z), MergeValue(factors, before.w, merged.w)};
    }
    if (last) merged = {merged.x * share, merged.y * share, merged.z * share, merged.w * share};
    *at = merged;
  });
}

}  // namespace llm
