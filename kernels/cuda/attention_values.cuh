// The softmax of a strip's scores and the sums of values that it weighs, by one warp for 16 rows:
// lane 4 g + t has rows g and g + 8, keys 8 t to 8 t + 7.
#pragma once

#include <cmath>

#include "kernels/cuda/attention_queries.cuh"

namespace llm {

__device__ __forceinline__ float MinusInfinity() { return __uint_as_float(0xff800000u); }

// Of the lane's two rows. Strips that a row does not see change no bit of what it has: its
// correction is 1, and what is added is -0.
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

// What a strip is to the lane's rows.
struct StripWeights {
  float weights[2][8];  // [row][8 t + m]: relative to the new maximum
  float corrections[2];
  float down[2];        // of what mma gives; -1 for a row that does not see the strip
  uint32_t visible[2];  // bit m: key 8 t + m
  bool edge;            // some of the warp's rows do not see all keys
};

// `row`: the lane's first one in `queries`.
template <int kGroups>
__device__ __forceinline__ StripWeights Weigh(const AttentionArgs& args,
                                              const AttentionQueries& queries, int row, int key,
                                              const float (&scores)[4][4],
                                              AttentionState<kGroups>* state) {
  StripWeights strip;
  const int first = key + Lane() % 4 * 8;
  bool whole = true;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const AttentionRow where = queries.where[row + 8 * r];
    const float score_scale = queries.scales[row + 8 * r];
    float s[8];
    float max = state->max[r];
    strip.visible[r] = 0;
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      s[m] = scores[m % 4][2 * r + m / 4] * score_scale;
      if (args.soft_cap > 0) s[m] = args.soft_cap * tanhf(s[m] / args.soft_cap);
      const bool visible = first + m >= where.first_key && first + m < where.end_key;
      if (!visible) continue;
      strip.visible[r] |= 1u << m;
      max = fmaxf(max, s[m]);
    }
    max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, 1));
    max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, 2));
    const float correction = max == state->max[r] ? 1.0f : expf(state->max[r] - max);
    float sum = 0;
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      strip.weights[r][m] = (strip.visible[r] >> m & 1) != 0 ? expf(s[m] - max) : 0.0f;
      sum += strip.weights[r][m];
    }
    state->sum[r] = fmaf(state->sum[r], correction, sum);
    state->max[r] = max;
    strip.corrections[r] = correction;
    const bool seen = key + kStripKeys > where.first_key && key < where.end_key;
    strip.down[r] = seen ? 1.0f : -1.0f;
    if (strip.visible[r] != 0xff && where.token >= 0) whole = false;
  }
  strip.edge = __any_sync(kAllLanes, !whole) != 0;
  return strip;
}

// The weights times their values' scales, as mma takes them: of step s, keys 8 t + 4 s to 8 t + 4 s
// + 3. `down` receives what turns the products back.
template <DType kType>
__device__ __forceinline__ void SplitWeights(const StripWeights& strip, const float (&scales)[8],
                                             uint32_t (&a)[2][kMetParts<kType>][4],
                                             float (&down)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float weights[8];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      const float weight = strip.weights[r][m];
      weights[m] = weight;
      // Of keys that are not seen the scale may be NaN.
      if (Slab<kType>::kScaleGroups > 0) weights[m] = weight == 0 ? 0.0f : weight * scales[m];
    }
    Normalizer by = {1, 1};
    if constexpr (kType == DType::kF16) {
      by = {0x1p14f, 0x1p-14f};  // weights are at most 1
    } else if constexpr (kMeetsF16<kType>) {
      float largest = 0;
#pragma unroll
      for (int m = 0; m < 8; ++m) largest = fmaxf(largest, fabsf(weights[m]));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      by = NormalizerOf(largest);
    }
    down[r] = strip.down[r] * by.down * kElementUnit<kType>;
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

// The products with values that are not finite, which AddValues has left out: only rows that see
// the key receive them. Seldom called.
template <DType kType>
__device__ __forceinline__ void SpreadNonFinite(const StripWeights& strip, const std::byte* slab,
                                                int group, bool half, float (&sums)[4][4]) {
  const int column = half ? Lane() % 4 % 2 : Lane() % 4;
#pragma unroll 1
  for (int key = 0; key < kStripKeys; ++key) {
    const std::byte* row = slab + ValueRow(key) * Slab<kType>::kValueStride;
    const int owner = Lane() / 4 * 4 + key / 8;
    const bool seen[2] = {(__shfl_sync(kAllLanes, strip.visible[0], owner) >> (key % 8) & 1) != 0,
                          (__shfl_sync(kAllLanes, strip.visible[1], owner) >> (key % 8) & 1) != 0};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float x = LoadElement(kType, row, group * kKvGroup + column * 8 + e);
      if (IsFinite(x)) continue;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (seen[r]) sums[e % 4][2 * r + e / 4] += x;
      }
    }
  }
}

// sums[i] = the weighted sum of dimensions 8 t + 4 h + i of the slab's group.
template <DType kType>
__device__ __forceinline__ void MultiplyValues(const StripWeights& strip,
                                               const uint32_t (&a)[2][kMetParts<kType>][4],
                                               const std::byte* slab, int group, bool half,
                                               float (&sums)[4][4]) {
  bool left_out = false;
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    Quad<kType> quads[4];
    LoadValueQuads<kType>(slab, group, half, step, quads);
    if (strip.edge) {
#pragma unroll
      for (Quad<kType>& quad : quads) {
        if (ZeroNonFinite<kType>(&quad)) left_out = true;
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t b[kOwnParts<kType>][2];
      ToFragment<kType>(quads, i, b);
      MultiplyParts<kType>(a[step], b, sums[i]);
    }
  }
  if constexpr (kType != DType::kI8 && kType != DType::kI4) {
    if (strip.edge && __any_sync(kAllLanes, left_out)) {
      SpreadNonFinite<kType>(strip, slab, group, half, sums);
    }
  }
}

// The warp's dimensions of one slab: every kSlices-th group of 32.
template <DType kType, int kSlices, int kGroups>
__device__ __forceinline__ void AddValues(const KvArgs& kv, const StripWeights& strip, int slice,
                                          const std::byte* slab, int slab_index,
                                          uint32_t (&a)[2][kMetParts<kType>][4], float (&down)[2],
                                          AttentionState<kGroups>* state) {
  constexpr int kCount = kSlabGroups / kSlices;
  const int dims = min(kv.head_dim - slab_index * kSlabDims, kSlabDims);
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const int group = n * kSlices + slice;
    if (group * kKvGroup >= dims) break;
    if (kType == DType::kI4 || (n == 0 && slab_index == 0)) {
      float scales[8] = {};
      if constexpr (Slab<kType>::kScaleGroups > 0) {
        if (kv.scale_groups > 0) {
          LoadScales<kType>(slab, kType == DType::kI4 ? group : 0, scales);
        } else {
#pragma unroll
          for (float& scale : scales) scale = kv.value_scale;
        }
      }
      SplitWeights<kType>(strip, scales, a, down);
    }
    float sums[4][4] = {};
    MultiplyValues<kType>(strip, a, slab, group, dims - group * kKvGroup < kKvGroup, sums);
    float(&values)[4][4] = state->values[slab_index * kCount + n];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        values[i][c] = fmaf(values[i][c], strip.corrections[c / 2], sums[i][c] * down[c / 2]);
      }
    }
  }
}

}  // namespace llm
