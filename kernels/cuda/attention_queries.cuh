// A block's queries in shared memory, split as the keys' dtype asks, and their products with keys.
#pragma once

#include <cmath>

#include "kernels/cuda/attention_slab.cuh"

namespace llm {

// [parts, rows, Stride]: rows are an odd number of 16 bytes, so that ldmatrix finds eight of them
// in all the banks.
struct AttentionQueries {
  uint16_t* parts;
  float* scales;        // [rows]: what scores of the row are to be multiplied by
  AttentionRow* where;  // [rows]: kept here, since registers are few
  int rows;
  int stride;

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

// A warp a row; rows that are not there are zeros.
template <DType kType, int kWarps>
__device__ __forceinline__ void LoadQueries(const AttentionArgs& args, const AttentionRows& rows,
                                            const AttentionQueries& queries) {
  const KvArgs& kv = args.kv;
  const float constant = kType == DType::kF8E4M3 && kv.scale_groups == 0 ? kv.key_scale : 1.0f;
#pragma unroll 1
  for (int row = WarpIndex(); row < queries.rows; row += kWarps) {
    const float* q = nullptr;
    AttentionRow at = {-1, 0, 0, 0};
    if (row < rows.count) {
      at = FindRow(args, rows, row);
      q = args.q + int64_t{at.token} * args.q_stride + int64_t{at.head} * kv.head_dim;
    }
    Normalizer by = {1, 1};
    if constexpr (kMeetsF16<kType>) {
      float largest = 0;
      for (int d = Lane(); q != nullptr && d < kv.head_dim; d += kWarp) {
        largest = fmaxf(largest, fabsf(q[d]));
      }
      by = NormalizerOf(WarpMax(largest));
    }
    StoreQuery<kType>(kv, q, row, by.up, queries);
    if (Lane() == 0) {
      queries.where[row] = at;
      queries.scales[row] = by.down * kElementUnit<kType> * constant * args.scale;
    }
  }
}

// Adds the products of the slab's dimensions, every kSlices-th 32 from `slice` on, of 16 queries
// and 32 keys: scores[i] of keys 8 t + 4 h + i. Tensor cores cut where they add: 32 dimensions are
// summed from zero, so that what they lose is as small as what a chain of fmaf rounds.
template <DType kType, int kSlices>
__device__ __forceinline__ void AddKeys(const KvArgs& kv, const AttentionQueries& queries, int row,
                                        int slice, const std::byte* slab, int dim,
                                        float (&scores)[4][4]) {
  const int dims = min(kv.head_dim - dim, kSlabDims);
#pragma unroll 1
  for (int group = slice; group * kKvGroup < dims; group += kSlices) {
    float sums[4][4] = {};
#pragma unroll
    for (int d = group * kKvGroup; d < group * kKvGroup + kKvGroup; d += 16) {
      if (d >= dims) break;
      Quad<kType> quads[4];
      LoadKeyQuads<kType>(slab, d, quads);
      uint32_t a[kMetParts<kType>][4];
#pragma unroll
      for (int part = 0; part < kMetParts<kType>; ++part) {
        LoadMatrix4(a[part], queries.At(part, row + Lane() % 16, dim + d + Lane() / 16 * 8));
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        uint32_t b[kOwnParts<kType>][2];
        ToFragment<kType>(quads, i, b);
        MultiplyParts<kType>(a, b, sums[i]);
      }
    }
    if constexpr (kType == DType::kI4) {
      float scales[8];
      LoadScales<kType>(slab, group, scales);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          scores[i][c] = fmaf(scales[4 * (c % 2) + i], sums[i][c], scores[i][c]);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int c = 0; c < 4; ++c) scores[i][c] += sums[i][c];
      }
    }
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
      for (int c = 0; c < 4; ++c) scores[i][c] *= scales[4 * (c % 2) + i];
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
