// The softmax of a strip's scores and the sums of values that it weighs, by one warp for 16 rows:
// lane 4 g + t has rows g and g + 8, and of them the keys and dimensions that ColumnOf names.
#pragma once

#include <cmath>

#include "kernels/cuda/attention_queries.cuh"

namespace llm {

__device__ __forceinline__ float MinusInfinity() { return __uint_as_float(0xff800000u); }

// What sums of weighted values are times, until a split ends.
template <DType kType>
constexpr float kValueUnit = kType == DType::kF16 ? 0x1p-14f : 1.0f;

// Of the lane's two rows. Strips that a row does not see change no bit of what it has but the sign
// of a zero, which no output has: its correction is 1, and zeros are added.
template <int kGroups>
struct AttentionState {
  float max[2];
  float sum[2];  // of the lane's keys
  float values[kGroups][4][4];
};

template <int kGroups>
__device__ __forceinline__ void ClearState(AttentionState<kGroups>* state) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    state->max[r] = MinusInfinity();
    state->sum[r] = 0;
  }
#pragma unroll
  for (int j = 0; j < kGroups; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) state->values[j][i][c] = 0;
    }
  }
}

// The keys of a tile's rows: some row sees [begin, end), every row that is there [inner_begin,
// inner_end).
struct TileKeys {
  int begin;
  int end;
  int inner_begin;
  int inner_end;

  __device__ __forceinline__ bool Sees(int strip) const {
    return strip + kStripKeys > begin && strip < end;
  }
  // Some of the rows do not see all keys of the strip.
  __device__ __forceinline__ bool IsEdge(int strip) const {
    return strip < inner_begin || strip + kStripKeys > inner_end;
  }
};
// Of 16 rows from `first` on; those that are there, `count` in the block, come first.
__device__ __forceinline__ TileKeys KeysOfTile(const AttentionQueries& queries, int first,
                                               int count) {
  if (first >= count) return {0, 0, 0, 0};
  const AttentionRow& least = queries.where[first];
  const AttentionRow& most = queries.where[min(first + 15, count - 1)];
  return {least.first_key, most.end_key, most.first_key, least.end_key};
}

// Caps the scores if there is a cap. What each row's are to be multiplied by is in `scales`.
__device__ __forceinline__ void CapScores(float cap, float (&scales)[2], float (&scores)[4][4]) {
  if (cap <= 0) return;
  const float inverse = 1.0f / (cap * kLog2OfE);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      scores[i][c] = cap * kLog2OfE * tanhf(scores[i][c] * scales[c / 2] * inverse);
    }
  }
  scales[0] = scales[1] = 1;
}

constexpr uint32_t kAllVisible = 0xffff;

// Bit 4 i + c: the row of scores[i][c] sees the key. `row`: the lane's first one in `queries`.
template <DType kType>
__device__ __forceinline__ uint32_t VisibleKeys(const AttentionQueries& queries, int row, int key) {
  uint32_t visible = 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const AttentionRow where = queries.where[row + 8 * r];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      const int i = m / 2;
      const int c = 2 * r + m % 2;
      const int at = key + ColumnOf<kType>(i, c);
      if (at >= where.first_key && at < where.end_key) visible |= 1u << (4 * i + c);
    }
  }
  return visible;
}

// The largest score of each of the lane's rows, scaled; scores of keys not in `visible` become
// minus infinity.
__device__ __forceinline__ void LargestScores(uint32_t visible, const float (&scales)[2],
                                              float (&scores)[4][4], float (&largest)[2]) {
  if (visible != kAllVisible) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if ((visible >> i & 1) == 0) scores[i / 4][i % 4] = MinusInfinity();
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float max = fmaxf(scores[0][2 * r], scores[0][2 * r + 1]);
#pragma unroll
    for (int i = 1; i < 4; ++i) max = fmaxf(max, fmaxf(scores[i][2 * r], scores[i][2 * r + 1]));
    max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, 1));
    max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, 2));
    largest[r] = max * scales[r];
  }
}

// What the sums of before are to be multiplied by when the maximum becomes `max`.
__device__ __forceinline__ float CorrectionOf(float before, float max) {
  return max == before ? 1.0f : Exp2(before - max);
}

// The scores become weights relative to `max`, and `sums` those of the lane's.
__device__ __forceinline__ void WeighScores(uint32_t visible, const float (&scales)[2],
                                            const float (&max)[2], float (&scores)[4][4],
                                            float (&sums)[2]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      scores[i][c] = Exp2(fmaf(scores[i][c], scales[c / 2], -max[c / 2]));
    }
  }
  if (visible != kAllVisible) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if ((visible >> i & 1) == 0) scores[i / 4][i % 4] = 0;
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sums[r] = scores[0][2 * r] + scores[0][2 * r + 1];
#pragma unroll
    for (int i = 1; i < 4; ++i) sums[r] = sums[r] + scores[i][2 * r] + scores[i][2 * r + 1];
  }
}

// Where a warp is.
struct StripPlace {
  const AttentionQueries* queries;
  int row;  // the lane's first one
  int key;  // the strip's
  bool edge;
};

// A strip's scores become weights, the state's maxima and sums those with them.
template <DType kType, int kGroups>
__device__ __forceinline__ void Weigh(const AttentionArgs& args, const StripPlace& place,
                                      float (&scores)[4][4], float (&corrections)[2],
                                      AttentionState<kGroups>* state) {
  const AttentionQueries& queries = *place.queries;
  float scales[2] = {queries.scales[place.row], queries.scales[place.row + 8]};
  CapScores(args.soft_cap, scales, scores);
  const uint32_t visible =
      place.edge ? VisibleKeys<kType>(queries, place.row, place.key) : kAllVisible;
  float largest[2];
  LargestScores(visible, scales, scores, largest);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float before = state->max[r];
    state->max[r] = fmaxf(before, largest[r]);
    corrections[r] = CorrectionOf(before, state->max[r]);
  }
  float sums[2];
  WeighScores(visible, scales, state->max, scores, sums);
#pragma unroll
  for (int r = 0; r < 2; ++r) state->sum[r] = fmaf(state->sum[r], corrections[r], sums[r]);
}

// The weights times their values' scales, as mma takes them: of step s, the strip's tile s. `down`
// receives what turns the products back to multiples of kValueUnit.
template <DType kType>
__device__ __forceinline__ void SplitWeights(const float (&strip)[4][4], const float (&scales)[8],
                                             uint32_t (&a)[2][kMetParts<kType>][4],
                                             float (&down)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float weights[8];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      const float weight = strip[m / 2][2 * r + m % 2];
      weights[m] = weight;
      // Of keys that are not seen the scale may be NaN.
      if (Slab<kType>::kScaleGroups > 0) {
        weights[m] = weight == 0 ? 0.0f : weight * scales[ScaleIndex(m / 2, m)];
      }
    }
    Normalizer by = {1, 1};
    if constexpr (kType == DType::kF16) {
      by.up = 1 / kValueUnit<kType>;  // weights are at most 1
    } else if constexpr (kMeetsF16<kType>) {
      float largest = 0;
#pragma unroll
      for (int m = 0; m < 8; ++m) largest = fmaxf(largest, fabsf(weights[m]));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      by = NormalizerOf(largest);
    }
    down[r] = by.down * kElementUnit<kType>;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      uint32_t parts[kMetParts<kType>];
      SplitPair<kType>(weights[2 * pair] * by.up, weights[2 * pair + 1] * by.up, parts);
#pragma unroll
      for (int part = 0; part < kMetParts<kType>; ++part) {
        a[pair / 2][part][r + pair % 2 * 2] = parts[part];
      }
    }
  }
}

// The products with values that are not finite, which MultiplyValues has left out: only rows that
// see the key receive them. Seldom called, so its loops save registers.
template <DType kType>
__device__ __forceinline__ void SpreadNonFinite(const StripPlace& place, const std::byte* slab,
                                                int group, bool half, float (&sums)[4][4]) {
#pragma unroll 1
  for (int j = 0; j < kStripKeys * 8; ++j) {
    const int key = j / 8;
    const int i = half ? j / 2 % 2 : j / 2 % 4;
    const std::byte* row = slab + ValueRow<kType>(key) * Slab<kType>::kValueStride;
    const float x = LoadElement(kType, row, group * kKvGroup + ColumnOf<kType>(i, j % 2));
    if (IsFinite(x)) continue;
    float added[2];  // to rows that do not see it, what changes nothing
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const AttentionRow& where = place.queries->where[place.row + 8 * r];
      const bool seen = place.key + key >= where.first_key && place.key + key < where.end_key;
      added[r] = seen ? x : -0.0f;
    }
#pragma unroll
    for (int e = 0; e < 16; ++e) {  // registers have no index
      const bool meant = e / 4 == j / 2 % 4 && e % 2 == j % 2;
      sums[e / 4][e % 4] += meant ? added[e / 2 % 2] : -0.0f;
    }
  }
}

// sums[i] = the weighted sum of dimensions ColumnOf(i) of the slab's group.
template <DType kType, bool kInner>
__device__ __forceinline__ void MultiplyValues(const StripPlace& place,
                                               const uint32_t (&a)[2][kMetParts<kType>][4],
                                               const std::byte* slab, int group, bool half,
                                               float (&sums)[4][4]) {
  constexpr bool kAlwaysFinite = kType == DType::kI8 || kType == DType::kI4;
  bool left_out = false;
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    uint32_t b[4][kOwnParts<kType>][2];
    LoadValueFragments<kType>(slab, group, half, step, b);
    if (!kInner && !kAlwaysFinite && place.edge) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (ZeroNonFinite<kType>(b[i])) left_out = true;
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) MultiplyParts<kType>(a[step], b[i], sums[i]);
  }
  if constexpr (!kInner && !kAlwaysFinite) {
    if (place.edge && __any_sync(kAllLanes, left_out)) {
      SpreadNonFinite<kType>(place, slab, group, half, sums);
    }
  }
}

// Of a slab: its place among those of the values, its dimensions.
struct ValueSlab {
  const std::byte* memory;
  int index;
  int dims;
};

template <DType kType, int kSlices, bool kInner, int kGroups>
__device__ __forceinline__ void AddValuesOf(const KvArgs& kv, const StripPlace& place,
                                            const float (&weights)[4][4],
                                            const float (&corrections)[2], int slice,
                                            const ValueSlab& slab,
                                            uint32_t (&a)[2][kMetParts<kType>][4], float (&down)[2],
                                            AttentionState<kGroups>* state) {
  constexpr int kCount = kSlabGroups / kSlices;
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const int group = n * kSlices + slice;
    if (!kInner && group * kKvGroup >= slab.dims) break;
    if (kType == DType::kI4 || (n == 0 && slab.index == 0)) {
      float scales[8] = {};
      if constexpr (Slab<kType>::kScaleGroups > 0) {
        if (kv.scale_groups > 0) {
          LoadScales<kType>(slab.memory, kType == DType::kI4 ? group : 0, scales);
        } else {
#pragma unroll
          for (float& scale : scales) scale = kv.value_scale;
        }
      }
      SplitWeights<kType>(weights, scales, a, down);
    }
    float sums[4][4] = {};
    const bool half = !kInner && slab.dims - group * kKvGroup < kKvGroup;
    MultiplyValues<kType, kInner>(place, a, slab.memory, group, half, sums);
    float(&values)[4][4] = state->values[slab.index * kCount + n];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        // Without scales `down` is 1.
        const float sum = Slab<kType>::kScaleGroups > 0 ? sums[i][c] * down[c / 2] : sums[i][c];
        values[i][c] = fmaf(values[i][c], corrections[c / 2], sum);
      }
    }
  }
}

// The warp's dimensions of one slab: every kSlices-th group of 32. `weights` of the strip, which
// `a` and `down` keep from slab to slab. Without a question in between where rows see all keys and
// the slab is whole, as most are.
template <DType kType, int kSlices, int kGroups>
__device__ __forceinline__ void AddValues(const KvArgs& kv, const StripPlace& place,
                                          const float (&weights)[4][4],
                                          const float (&corrections)[2], int slice,
                                          const std::byte* memory, int index,
                                          uint32_t (&a)[2][kMetParts<kType>][4], float (&down)[2],
                                          AttentionState<kGroups>* state) {
  const ValueSlab slab = {memory, index, min(kv.head_dim - index * kSlabDims, kSlabDims)};
  if (!place.edge && slab.dims == kSlabDims) {
    AddValuesOf<kType, kSlices, true>(kv, place, weights, corrections, slice, slab, a, down, state);
  } else {
    AddValuesOf<kType, kSlices, false>(kv, place, weights, corrections, slice, slab, a, down,
                                       state);
  }
}

}  // namespace llm
