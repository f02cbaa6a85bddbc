// What attention knows of a row's keys: the largest score as an exponent of 2, the sum of powers
// and the weighted values relative to it. A part is that of one split; parts are merged in
// ascending order.
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
  const MergeFactors factors = {Exp2(total->max - max), Exp2(part.max - max)};
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
  const float sink = sinks[head] * kLog2OfE;
  const float max = fmaxf(total.max, sink);
  const float factor = Exp2(total.max - max);
  return factor / fmaf(total.sum, factor, Exp2(sink - max));
}

// A part in args.partials: its values, then maximum and sum, then nothing up to 16 bytes.
__device__ __forceinline__ float* PartMemory(const AttentionArgs& args, int token, int head,
                                             int split) {
  const int64_t index = (int64_t{token} * args.num_heads + head) * args.num_splits + split;
  return args.partials + index * AttentionPartFloats(args.kv.head_dim);
}

// Calls visit(where, values) with two neighbouring dimensions of the lane's row `r` at a time.
template <DType kType, int kSlices, int kGroups, typename Visit>
__device__ __forceinline__ void VisitValues(const KvArgs& kv, int slice, int r,
                                            AttentionState<kGroups>& state, const Visit& visit) {
#pragma unroll
  for (int j = 0; j < kGroups; ++j) {
    const int group = j * kSlices + slice;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // Paired elements: matrices 2 h and 2 h + 1 have a dimension each of two.
      const int first = kPaired<kType> ? i / 2 * 2 : i;
      const int column = kPaired<kType> ? i % 2 : 0;
      const int dim = group * kKvGroup + ColumnOf<kType>(first, column);
      if (dim >= kv.head_dim) continue;
      const float values[2] = {state.values[j][first][2 * r + column],
                               kPaired<kType> ? state.values[j][first + 1][2 * r + column]
                                              : state.values[j][i][2 * r + 1]};
      // The sign of a zero may come from strips that the row does not see.
      visit(dim,
            float2{values[0] * kValueUnit<kType> + 0.0f, values[1] * kValueUnit<kType> + 0.0f});
    }
  }
}

template <DType kType, int kSlices, int kGroups>
__device__ __forceinline__ void StorePart(const AttentionArgs& args, const AttentionRow& row,
                                          int split, int slice, int r, const PartSums& part,
                                          AttentionState<kGroups>& state) {
  float* memory = PartMemory(args, row.token, row.head, split);
  if (slice == 0 && Lane() % 4 == 0) {
    memory[args.kv.head_dim] = part.max;
    memory[args.kv.head_dim + 1] = part.sum;
  }
  VisitValues<kType, kSlices>(args.kv, slice, r, state, [&](int dim, const float2& values) {
    *reinterpret_cast<float2*>(memory + dim) = values;
  });
}

// Adds a part to what the splits before have left in the output, which the last one completes.
template <DType kType, int kSlices, int kGroups>
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
  VisitValues<kType, kSlices>(args.kv, slice, r, state, [&](int dim, const float2& values) {
    float2* at = reinterpret_cast<float2*>(out + dim);
    float2 merged = values;
    if (!first) {
      const float2 before = *at;
      merged = {MergeValue(factors, before.x, merged.x), MergeValue(factors, before.y, merged.y)};
    }
    if (last) merged = {merged.x * share, merged.y * share};
    *at = merged;
  });
}

// Ends a split: what the state has of it goes to its part, or to the output.
template <DType kType, int kSlices, int kGroups>
__device__ __forceinline__ void FinishSplit(const AttentionArgs& args,
                                            const AttentionQueries& queries, int first_row,
                                            int slice, int split, PartSums* totals,
                                            AttentionState<kGroups>* state) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float sum = state->sum[r];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    const AttentionRow row = queries.where[first_row + 8 * r];
    const bool seen = row.token >= 0 && row.first_key < (split + 1) * kSplitKeys &&
                      row.end_key > split * kSplitKeys;
    if (!seen) continue;
    const PartSums part = {state->max[r], sum};
    if (args.partials != nullptr) {
      StorePart<kType, kSlices>(args, row, split, slice, r, part, *state);
    } else {
      MergeIntoOutput<kType, kSlices>(args, row, split, slice, r, part, &totals[r], *state);
    }
  }
}

}  // namespace llm
