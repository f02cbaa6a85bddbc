// Attention with heads of more than 128 dimensions: two or four warps have 16 rows, each with every
// second or fourth 32 dimensions.
#pragma once

#include "kernels/cuda/attention_copies.cuh"
#include "kernels/cuda/attention_part.cuh"
#include "kernels/cuda/launch.cuh"

namespace llm {

// kTiles: of 16 rows in a block. kBlocks: a multiprocessor, for its registers.
template <int kTilesOfBlock, int kMaxSlabs, int kSlicesOfRow, int kBlocksOfSm>
struct SlicesShape {
  static constexpr int kTiles = kTilesOfBlock;
  static constexpr int kSlabs = kMaxSlabs;  // head_dim up to kSlabs * kSlabDims
  static constexpr int kSlices = kSlicesOfRow;
  static constexpr int kBlocks = kBlocksOfSm;
  static constexpr int kRows = 16 * kTiles;
  static constexpr int kWarps = kTiles * kSlices;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kGroups = kSlabs * kSlabGroups / kSlices;  // of 32 dimensions, of a warp
};

// One row tile is short of work while it waits: more on their way. Where the most lies in shared
// memory, two.
template <DType kType, typename Shape>
constexpr int kSlabStages = Shape::kTiles > 1      ? 2
                            : Shape::kSlabs < 5    ? 4
                            : kType == DType::kF32 ? 2
                                                   : 3;

template <DType kType, typename Shape>
struct SlicesShared {
  static constexpr int kRingBytes = kSlabStages<kType, Shape> * Slab<kType>::kBytes;
  static constexpr int kSliceFloats = Shape::kWarps * 16 * kWarp;
  std::byte* ring;
  float* slices;
  AttentionQueries queries;

  static __device__ __forceinline__ SlicesShared View(int head_dim) {
    std::byte* memory = DynamicShared<std::byte>();
    float* slices = reinterpret_cast<float*>(memory + kRingBytes);
    AttentionRow* where = reinterpret_cast<AttentionRow*>(slices + kSliceFloats);
    float* scales = reinterpret_cast<float*>(where + Shape::kRows);
    uint16_t* parts = reinterpret_cast<uint16_t*>(scales + Shape::kRows);
    return {memory, slices, {parts, scales, where, Shape::kRows, QueryStride(head_dim)}};
  }
  static size_t Bytes(int head_dim) {
    return static_cast<size_t>(kRingBytes) + (kSliceFloats + Shape::kRows) * sizeof(float) +
           Shape::kRows * sizeof(AttentionRow) +
           static_cast<size_t>(kMetParts<kType> * Shape::kRows * QueryStride(head_dim)) *
               sizeof(uint16_t);
  }
};

template <DType kType, typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    attention_slices_kernel(const AttentionArgs args) {
  constexpr int kSlices = Shape::kSlices;
  using Shared = SlicesShared<kType, Shape>;
  const AttentionRows rows = RowsOfBlock(args, Shape::kRows);
  if (rows.count == 0) return;
  const int head_dim = args.kv.head_dim;
  const Shared shared = Shared::View(head_dim);
  const AttentionQueries& queries = shared.queries;
  const int first_strip = rows.first_key / kStripKeys * kStripKeys;
  SlabRing<kType, Shape::kThreads, kSlabStages<kType, Shape>> ring = {
      shared.ring, {first_strip, false, 0}, 0, {}};
  ring.Start(args.kv, rows);
  LoadQueries<kType, Shape::kWarps>(args, rows, queries);
  __syncthreads();  // the queries are there
  const int first_row = WarpIndex() / kSlices * 16;
  const int slice = WarpIndex() % kSlices;
  const int lane_row = first_row + Lane() / 4;
  const TileKeys keys = KeysOfTile(queries, first_row, rows.count);
  AttentionState<Shape::kGroups> state;
  PartSums totals[2] = {};
  ClearState(&state);
#pragma unroll 1
  for (int key = first_strip; key < rows.end_key; key += kStripKeys) {
    const bool seen = keys.Sees(key);  // one answer a warp
    const StripPlace place = {&queries, lane_row, key, keys.IsEdge(key)};
    float scores[4][4] = {};
#pragma unroll 1
    for (int dim = 0; dim < head_dim; dim += kSlabDims) {
      const std::byte* slab = ring.Next(args.kv, rows);
      if (!seen) continue;
      const auto load = [&](int d, uint32_t(&a)[kMetParts<kType>][4]) {
        queries.Load(first_row, dim + d, a);
      };
      AddKeys<kType, kSlices>(load, slice, slab, min(head_dim - dim, kSlabDims), scores);
      if (dim + kSlabDims >= head_dim) ScaleScores<kType>(args.kv, slab, scores);
    }
    SumSlices<kSlices>(slice, shared.slices + first_row * kSlices * kWarp, scores);
    float corrections[2] = {1, 1};
    if (seen) Weigh<kType>(args, place, scores, corrections, &state);
    uint32_t a[2][kMetParts<kType>][4];
    float down[2];
#pragma unroll
    for (int i = 0; i < Shape::kSlabs; ++i) {
      if (i * kSlabDims >= head_dim) break;
      const std::byte* slab = ring.Next(args.kv, rows);
      if (!seen) continue;
      AddValues<kType, kSlices>(args.kv, place, scores, corrections, slice, slab, i, a, down,
                                &state);
    }
    const int next = key + kStripKeys;
    if (next % kSplitKeys == 0 || next >= rows.end_key) {
      FinishSplit<kType, kSlices>(args, queries, lane_row, slice, key / kSplitKeys, totals, &state);
      ClearState(&state);
    }
  }
}

template <DType kType, typename Shape>
cudaError_t LaunchSlices(const AttentionArgs& args, LaunchStream stream) {
  return Launch(attention_slices_kernel<kType, Shape>,
                {GridOf(args, Shape::kRows), dim3(Shape::kThreads),
                 SlicesShared<kType, Shape>::Bytes(args.kv.head_dim)},
                stream, args);
}

}  // namespace llm
