// Attention over paged keys and values on tensor cores: a warp has 16 rows (query token, head) of a
// kv head; with large heads two or four warps do, each with every second or fourth 32 dimensions.
//
// Keys and values come in slabs (attention_slab.cuh), a strip of 32 keys at a time: the products of
// a strip, its softmax, and its weighted values are added in one order, whatever else the block
// has, so that the rows' bits show neither batch nor chunk. Splits of 512 keys are parts, merged
// in ascending order by the block itself or, when there are few rows, by attention_merge_kernel.
#pragma once

#include "kernels/cuda/attention_part.cuh"
#include "kernels/cuda/launch.cuh"

namespace llm {

// kTiles: of 16 rows in a block. kBlocks: a multiprocessor, for its registers.
template <int kTilesOfBlock, int kMaxSlabs, int kSlicesOfRow, int kBlocksOfSm>
struct AttentionShapeOf {
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
struct AttentionShared {
  static constexpr int kRingBytes = kSlabStages<kType, Shape> * Slab<kType>::kBytes;
  static constexpr int kSliceFloats = Shape::kSlices == 1 ? 0 : Shape::kWarps * 16 * kWarp;
  std::byte* ring;
  float* slices;
  AttentionQueries queries;

  static __device__ __forceinline__ AttentionShared View(int head_dim) {
    std::byte* memory = DynamicShared<std::byte>();
    float* slices = reinterpret_cast<float*>(memory + kRingBytes);
    AttentionRow* where = reinterpret_cast<AttentionRow*>(slices + kSliceFloats);
    float* scales = reinterpret_cast<float*>(where + Shape::kRows);
    return {memory,
            slices,
            {reinterpret_cast<uint16_t*>(scales + Shape::kRows), scales, where, Shape::kRows,
             QueryStride(head_dim)}};
  }
  static size_t Bytes(int head_dim) {
    return static_cast<size_t>(kRingBytes) + (kSliceFloats + Shape::kRows) * sizeof(float) +
           Shape::kRows * sizeof(AttentionRow) +
           static_cast<size_t>(kMetParts<kType> * Shape::kRows * QueryStride(head_dim)) *
               sizeof(uint16_t);
  }
};

// Ends a split: what the state has of it goes to its part, or to the output.
template <int kSlices, int kGroups>
__device__ __forceinline__ void FinishSplit(const AttentionArgs& args,
                                            const AttentionQueries& queries, int first_row,
                                            int slice, int split, PartSums (&totals)[2],
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
      StorePart<kSlices>(args, row, split, slice, r, part, *state);
    } else {
      MergeIntoOutput<kSlices>(args, row, split, slice, r, part, &totals[r], *state);
    }
  }
  ClearState(state);
}

template <DType kType, typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    attention_kernel(const AttentionArgs args) {
  constexpr int kSlices = Shape::kSlices;
  using Shared = AttentionShared<kType, Shape>;
  // The last rows of a prompt see the most keys: they begin first.
  const int place = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  AttentionRows rows = FindRows(args, place, static_cast<int>(blockIdx.y), Shape::kRows);
  if (rows.count == 0) return;
  if (args.partials != nullptr) {  // a block a split
    const int first_key = static_cast<int>(blockIdx.z) * kSplitKeys;
    rows.first_key = max(rows.first_key, first_key);
    rows.end_key = min(rows.end_key, first_key + kSplitKeys);
    if (rows.first_key >= rows.end_key) return;
  }
  const Shared shared = Shared::View(args.kv.head_dim);
  const int first_strip = rows.first_key / kStripKeys * kStripKeys;
  SlabRing<kType, Shape::kThreads, kSlabStages<kType, Shape>> ring = {
      shared.ring, {first_strip, false, 0}, rows.end_key, 0, 0};
  ring.Start(args.kv, rows);
  LoadQueries<kType, Shape::kWarps>(args, rows, shared.queries);
  __syncthreads();  // the queries are there
  const int first_row = WarpIndex() / kSlices * 16;
  const int slice = WarpIndex() % kSlices;
  const int lane_row = first_row + Lane() / 4;
  const AttentionQueries& queries = shared.queries;
  AttentionState<Shape::kGroups> state;
  PartSums totals[2] = {};
  ClearState(&state);
  // Keys that the warp's rows see; rows that are there come first.
  const int last_row = min(first_row + 15, rows.count - 1);
  const int begin = first_row <= last_row ? queries.where[first_row].first_key : rows.end_key;
  const int end = first_row <= last_row ? queries.where[last_row].end_key : 0;
#pragma unroll 1
  for (int key = first_strip; key < rows.end_key; key += kStripKeys) {
    const bool seen = key + kStripKeys > begin && key < end;  // one answer a warp
    float scores[4][4] = {};
#pragma unroll 1
    for (int dim = 0; dim < args.kv.head_dim; dim += kSlabDims) {
      const std::byte* slab = ring.Next(args.kv, rows);
      if (!seen) continue;
      AddKeys<kType, kSlices>(args.kv, queries, first_row, slice, slab, dim, scores);
      if (dim + kSlabDims >= args.kv.head_dim) ScaleScores<kType>(args.kv, slab, scores);
    }
    StripWeights strip;
    uint32_t a[2][kMetParts<kType>][4];
    float down[2];
    if constexpr (kSlices > 1) {
      SumSlices<kSlices>(slice, shared.slices + first_row * kSlices * kWarp, scores);
    }
    if (seen) strip = Weigh(args, queries, lane_row, key, scores, &state);
#pragma unroll
    for (int i = 0; i < Shape::kSlabs; ++i) {
      if (i * kSlabDims >= args.kv.head_dim) break;
      const std::byte* slab = ring.Next(args.kv, rows);
      if (!seen) continue;
      AddValues<kType, kSlices>(args.kv, strip, slice, slab, i, a, down, &state);
    }
    const int next = key + kStripKeys;
    if (next % kSplitKeys == 0 || next >= rows.end_key) {
      FinishSplit<kSlices>(args, queries, lane_row, slice, key / kSplitKeys, totals, &state);
    }
  }
}

template <DType kType, typename Shape>
cudaError_t LaunchRows(const AttentionArgs& args, LaunchStream stream) {
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int64_t places = FirstPlace(args.num_tokens, group, Shape::kRows, args.num_sequences);
  const dim3 grid(static_cast<unsigned>(places), static_cast<unsigned>(args.kv.num_kv_heads),
                  args.partials != nullptr ? static_cast<unsigned>(args.num_splits) : 1);
  return Launch(
      attention_kernel<kType, Shape>,
      {grid, dim3(Shape::kThreads), AttentionShared<kType, Shape>::Bytes(args.kv.head_dim)}, stream,
      args);
}

// Small tiles for sequences with few rows each, as those that decode. F32, which is three bf16, has
// registers for more than 128 dimensions only where four warps share them.
template <DType kType>
cudaError_t LaunchAttentionOf(const AttentionArgs& args, LaunchStream stream) {
  const int64_t group = args.num_heads / args.kv.num_kv_heads;
  const bool few = args.num_tokens * group <= int64_t{16} * args.num_sequences;
  const int two_warps_dims = kType == DType::kF32 ? kSlabDims : 2 * kSlabDims;
  if (args.kv.head_dim > two_warps_dims) {
    return LaunchRows<kType, AttentionShapeOf<1, 5, 4, 2>>(args, stream);
  }
  if constexpr (kType != DType::kF32) {
    if (args.kv.head_dim > kSlabDims) {
      return few ? LaunchRows<kType, AttentionShapeOf<1, 2, 2, 4>>(args, stream)
                 : LaunchRows<kType, AttentionShapeOf<2, 2, 2, 2>>(args, stream);
    }
  }
  return few ? LaunchRows<kType, AttentionShapeOf<1, 1, 1, 8>>(args, stream)
             : LaunchRows<kType, AttentionShapeOf<4, 1, 1, 2>>(args, stream);
}

}  // namespace llm
