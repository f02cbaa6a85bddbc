// A block's queries in shared memory, split as the keys' dtype asks, and their products with keys.
#pragma once

#include <cmath>

#include "kernels/cuda/attention_slab.cuh"

namespace llm {

// Scores and their maxima are exponents of 2.
constexpr float kLog2OfE = 1.44269504f;

// [parts, rows, stride]: rows are an odd number of 16 bytes, so that ldmatrix finds eight of them
// in all the banks.
struct AttentionQueries {
  uint16_t* parts;
  float* scales;        // [rows]: what scores of the row are to be multiplied by; not negative
  AttentionRow* where;  // [rows]: kept here, since registers are few
  int rows;
  int stride;

  // Dimensions [dim, dim + 16) of rows [row, row + 16).
  __device__ __forceinline__ void Load(int part, int row, int dim, uint32_t (&a)[4]) const {
    LoadMatrix4(a, At(part, row + Lane() % 16, dim + Lane() / 16 * 8));
  }
  template <int kParts>
  __device__ __forceinline__ void Load(int row, int dim, uint32_t (&a)[kParts][4]) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) Load(part, row, dim, a[part]);
  }
  __device__ __forceinline__ uint16_t* At(int part, int row, int dim) const {
    return parts + (part * rows + row) * stride + dim;
  }
};
__host__ __device__ __forceinline__ int QueryStride(int head_dim) { return head_dim + 8; }

template <DType kType>
__device__ __forceinline__ void StoreQuery(const KvArgs& kv, const float* q, int row, float up,
                                           const AttentionQueries& queries) {
  for (int d = Lane(); d < kv.head_dim; d += kWarp) {
    float left = q != nullptr ? q[d] * up : 0.0f;
#pragma unroll
    for (int part = 0; part < kMetParts<kType>; ++part) {
      const uint16_t bits = kMeetsF16<kType> ? ToF16(left) : ToBF16(left);
      left -= kMeetsF16<kType> ? FromF16(bits) : FromBF16(bits);
      *queries.At(part, row, KeyPosition<kType>(d)) = bits;
    }
  }
}

// Queries are split as they are in shared memory: what brings a row's largest near 2^15 where f16
// meets them, and what gives scores back.
struct QueryScale {
  float up;
  float score;  // an exponent of 2
};
template <DType kType>
__device__ __forceinline__ QueryScale QueryScaleOf(const AttentionArgs& args, float largest) {
  const KvArgs& kv = args.kv;
  const float constant = kType == DType::kF8E4M3 && kv.scale_groups == 0 ? kv.key_scale : 1.0f;
  const float sign = args.scale < 0 ? -1.0f : 1.0f;  // of the queries, so that scores have none
  const Normalizer by = kMeetsF16<kType> ? NormalizerOf(largest) : Normalizer{1, 1};
  return {by.up * sign, by.down * kElementUnit<kType> * constant * (args.scale * sign) * kLog2OfE};
}

__device__ __forceinline__ const float* QueryOf(const AttentionArgs& args,
                                                const AttentionRow& row) {
  return args.q + int64_t{row.token} * args.q_stride + int64_t{row.head} * args.kv.head_dim;
}

// A warp a row; rows that are not there are zeros.
template <DType kType, int kWarps>
__device__ __forceinline__ void LoadQueries(const AttentionArgs& args, const AttentionRows& rows,
                                            const AttentionQueries& queries) {
  const KvArgs& kv = args.kv;
#pragma unroll 1
  for (int row = WarpIndex(); row < queries.rows; row += kWarps) {
    const AttentionRow at = FindRow(args, rows, row);
    const float* q = at.token < 0 ? nullptr : QueryOf(args, at);
    float largest = 0;
    for (int d = Lane(); kMeetsF16<kType> && q != nullptr && d < kv.head_dim; d += kWarp) {
      largest = fmaxf(largest, fabsf(q[d]));
    }
    if (kMeetsF16<kType>) largest = WarpMax(largest);
    const QueryScale scale = QueryScaleOf<kType>(args, largest);
    StoreQuery<kType>(kv, q, row, scale.up, queries);
    if (Lane() == 0) {
      queries.where[row] = at;
      queries.scales[row] = scale.score;
    }
  }
}

// The warp's 16 rows from `first` on as mma takes them: the first of two parts stays in registers,
// the other one in shared memory, since both together would take too much of either.
template <DType kType, int kSteps>
__device__ __forceinline__ void KeepQueries(const AttentionArgs& args, const AttentionRows& rows,
                                            int first, const AttentionQueries& queries,
                                            uint32_t (&kept)[kSteps][4]) {
  static_assert(kMetParts<kType> == 2);
  const int t = Lane() % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first + Lane() / 4 + 8 * r;
    const AttentionRow at = FindRow(args, rows, row);
    // Element e of the lane's four of each 16: I4 has them in another order.
    const float* q = at.token < 0 ? nullptr : QueryOf(args, at) + (kType == DType::kI4 ? 4 : 2) * t;
    const auto element = [&](int step, int e) {
      const int offset = kType == DType::kI4 ? e / 2 + e % 2 * 2 : e / 2 * 8 + e % 2;
      return q != nullptr && step * 16 < args.kv.head_dim ? q[step * 16 + offset] : 0.0f;
    };
    float largest = 0;
#pragma unroll 4
    for (int i = 0; i < 4 * kSteps; ++i) largest = fmaxf(largest, fabsf(element(i / 4, i % 4)));
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
    const QueryScale scale = QueryScaleOf<kType>(args, largest);
#pragma unroll
    for (int i = 0; i < 2 * kSteps; ++i) {
      uint32_t parts[kMetParts<kType>];
      SplitPair<kType>(element(i / 2, i % 2 * 2) * scale.up,
                       element(i / 2, i % 2 * 2 + 1) * scale.up, parts);
      kept[i / 2][r + i % 2 * 2] = parts[0];
      if (i * 8 < args.kv.head_dim) {
        *reinterpret_cast<uint32_t*>(queries.At(0, row, i * 8 + 2 * t)) = parts[1];
      }
    }
    if (t == 0) {
      queries.where[row] = at;
      queries.scales[row] = scale.score;
    }
  }
}

// Adds the products of the slab's dimensions, every kSlices-th 32 from `slice` on, of 16 queries
// and 32 keys: scores[i] of keys ColumnOf(i). `load(dim, a)` gives the queries' 16 dimensions from
// `dim` of the slab on. Tensor cores cut where they add: 32 dimensions are summed from zero, so
// that what they lose is as small as what a chain of fmaf rounds.
template <DType kType, int kSlices, bool kWhole, typename LoadQuery>
__device__ __forceinline__ void AddKeysOf(const LoadQuery& load, int slice, const std::byte* slab,
                                          int dims, float (&scores)[4][4]) {
#pragma unroll(kType == DType::kF32 ? 1 : kSlabGroups)
  for (int n = 0; n < kSlabGroups / kSlices; ++n) {
    const int group = n * kSlices + slice;
    if (!kWhole && group * kKvGroup >= dims) continue;
    float sums[4][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int d = group * kKvGroup + half * 16;
      if (!kWhole && d >= dims) continue;
      uint32_t b[4][kOwnParts<kType>][2];
      LoadKeyFragments<kType>(slab, d, b);
      uint32_t a[kMetParts<kType>][4];
      load(d, a);
#pragma unroll
      for (int i = 0; i < 4; ++i) MultiplyParts<kType>(a, b[i], sums[i]);
    }
    float scales[8] = {};
    if constexpr (kType == DType::kI4) LoadScales<kType>(slab, group, scales);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if constexpr (kType == DType::kI4) {
          scores[i][c] = fmaf(scales[ScaleIndex(i, c)], sums[i][c], scores[i][c]);
        } else {
          scores[i][c] += sums[i][c];
        }
      }
    }
  }
}

// Without a question in between where the slab is whole, as most are.
template <DType kType, int kSlices, typename LoadQuery>
__device__ __forceinline__ void AddKeys(const LoadQuery& load, int slice, const std::byte* slab,
                                        int dims, float (&scores)[4][4]) {
  if (dims == kSlabDims) {
    AddKeysOf<kType, kSlices, true>(load, slice, slab, dims, scores);
  } else {
    AddKeysOf<kType, kSlices, false>(load, slice, slab, dims, scores);
  }
}

// With the scales of whole keys, once all dimensions are there.
template <DType kType>
__device__ __forceinline__ void ScaleScores(const KvArgs& kv, const std::byte* slab,
                                            float (&scores)[4][4]) {
  if constexpr (kType == DType::kI8 || kType == DType::kF8E4M3) {
    if (kv.scale_groups == 0) return;
    float scales[8];
    LoadScales<kType>(slab, 0, scales);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) scores[i][c] *= scales[ScaleIndex(i, c)];
    }
  }
}

// The sums of the slices' scores, in the order of slices. `memory` holds the tile's [kSlices, 16,
// kWarp] floats. All warps of the block come here.
template <int kSlices>
__device__ __forceinline__ void SumSlices(int slice, float* memory, float (&scores)[4][4]) {
#pragma unroll
  for (int v = 0; v < 16; ++v) {
    memory[(slice * 16 + v) * kWarp + Lane()] = scores[v / 4][v % 4];
  }
  __syncthreads();  // all slices are there
#pragma unroll
  for (int v = 0; v < 16; ++v) {
    float sum = memory[v * kWarp + Lane()];
#pragma unroll
    for (int s = 1; s < kSlices; ++s) sum += memory[(s * 16 + v) * kWarp + Lane()];
    scores[v / 4][v % 4] = sum;
  }
}

}  // namespace llm
