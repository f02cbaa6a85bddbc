// Attention over paged keys and values on tensor cores: a warp has 16 rows (query token, head) of a
// kv head; with large heads two or four warps do, each with every second or fourth 32 dimensions.
//
// Keys and values come in slabs (attention_slab.cuh), a strip of 32 keys at a time: the products of
// a strip, its softmax, and its weighted values are added in one order, whatever else the block
// has, so that the rows' bits show neither batch nor chunk. Splits of 512 keys are parts, merged
// in ascending order by the block itself or, when there are few rows, by attention_merge_kernel.
#pragma once

#include "kernels/cuda/attention_few_kernel.cuh"
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

// Of slabs, or where a strip has two in all, of strips. One row tile is short of work while it
// waits: more on their way. Where the most lies in shared memory, two.
template <DType kType, typename Shape>
constexpr int kSlabStages = Shape::kSlabs == 1     ? (kMeetsF16<kType> ? 3 : 2)
                            : Shape::kTiles > 1    ? 2
                            : Shape::kSlabs < 5    ? 4
                            : kType == DType::kF32 ? 2
                                                   : 3;

// Of 16 dimensions of the queries, which stay in registers where these suffice.
template <DType kType, typename Shape>
constexpr int kKeptSteps = Shape::kSlabs == 1 && kMeetsF16<kType> ? kSlabDims / 16 : 0;

template <DType kType, typename Shape>
struct AttentionShared {
  static constexpr int kRingBytes =
      kSlabStages<kType, Shape> * (Shape::kSlabs == 1 ? 2 : 1) * Slab<kType>::kBytes;
  static constexpr int kParts = kKeptSteps<kType, Shape> > 0 ? 1 : kMetParts<kType>;
  static constexpr int kSliceFloats = Shape::kSlices == 1 ? 0 : Shape::kWarps * 16 * kWarp;
  std::byte* ring;
  float* slices;
  PartSums* totals;  // [kThreads, 2]: of each lane's rows, which registers have no place for
  AttentionQueries queries;

  static __device__ __forceinline__ AttentionShared View(int head_dim) {
    std::byte* memory = DynamicShared<std::byte>();
    float* slices = reinterpret_cast<float*>(memory + kRingBytes);
    PartSums* totals = reinterpret_cast<PartSums*>(slices + kSliceFloats);
    AttentionRow* where = reinterpret_cast<AttentionRow*>(totals + 2 * Shape::kThreads);
    float* scales = reinterpret_cast<float*>(where + Shape::kRows);
    return {memory,
            slices,
            totals,
            {reinterpret_cast<uint16_t*>(scales + Shape::kRows), scales, where, Shape::kRows,
             QueryStride(head_dim)}};
  }
  static size_t Bytes(int head_dim) {
    return static_cast<size_t>(kRingBytes) + (kSliceFloats + Shape::kRows) * sizeof(float) +
           Shape::kRows * sizeof(AttentionRow) + 2 * Shape::kThreads * sizeof(PartSums) +
           static_cast<size_t>(kParts * Shape::kRows * QueryStride(head_dim)) * sizeof(uint16_t);
  }
};

// The queries as a warp asks for them: the first part kept in registers, or all in shared memory.
template <DType kType, int kSteps>
struct WarpQueries {
  uint32_t kept[kSteps][4];
  __device__ __forceinline__ void Load(const AttentionQueries& queries, int row, int dim,
                                       uint32_t (&a)[kMetParts<kType>][4]) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) a[0][j] = kept[dim / 16][j];
    queries.Load(0, row, dim, a[1]);
  }
};
template <DType kType>
struct WarpQueries<kType, 0> {
  __device__ __forceinline__ void Load(const AttentionQueries& queries, int row, int dim,
                                       uint32_t (&a)[kMetParts<kType>][4]) const {
    queries.Load(row, dim, a);
  }
};

template <DType kType, typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    attention_kernel(const AttentionArgs args) {
  constexpr int kSlices = Shape::kSlices;
  constexpr int kSteps = kKeptSteps<kType, Shape>;
  constexpr int kStageSlabs = Shape::kSlabs == 1 ? 2 : 1;
  using Shared = AttentionShared<kType, Shape>;
  const AttentionRows rows = RowsOfBlock(args, Shape::kRows);
  if (rows.count == 0) return;
  const int head_dim = args.kv.head_dim;
  const Shared shared = Shared::View(head_dim);
  const AttentionQueries& queries = shared.queries;
  const int first_strip = rows.first_key / kStripKeys * kStripKeys;
  SlabRing<kType, Shape::kThreads, kSlabStages<kType, Shape>, kStageSlabs> ring = {
      shared.ring, rows.end_key, {first_strip, false, 0}, 0, {}};
  ring.Start(args.kv, rows, first_strip);
  const int first_row = WarpIndex() / kSlices * 16;
  const int slice = WarpIndex() % kSlices;
  const int lane_row = first_row + Lane() / 4;
  WarpQueries<kType, kSteps> warp_queries;
  if constexpr (kSteps > 0) {
    KeepQueries<kType, kSteps>(args, rows, first_row, queries, warp_queries.kept);
  } else {
    LoadQueries<kType, Shape::kWarps>(args, rows, queries);
  }
  __syncthreads();  // the queries are there
  AttentionState<Shape::kGroups> state;
  PartSums* totals = shared.totals + 2 * threadIdx.x;
  ClearState(&state);
#pragma unroll 1
  for (int key = first_strip; key < rows.end_key; key += kStripKeys) {
    // Read again each time: registers are few.
    const TileKeys keys = KeysOfTile(queries, first_row, rows.count);
    const bool seen = keys.Sees(key);  // one answer a warp
    const StripPlace place = {&queries, lane_row, key, keys.IsEdge(key)};
    float scores[4][4] = {};
    const std::byte* slab = nullptr;
#pragma unroll 1
    for (int dim = 0; dim < head_dim; dim += kSlabDims) {
      slab = ring.Next(args.kv, rows, key);
      if (!seen) continue;
      const auto load = [&](int d, uint32_t(&a)[kMetParts<kType>][4]) {
        warp_queries.Load(queries, first_row, Shape::kSlabs == 1 ? d : dim + d, a);
      };
      AddKeys<kType, kSlices>(load, slice, slab, min(head_dim - dim, kSlabDims), scores);
      if (dim + kSlabDims >= head_dim) ScaleScores<kType>(args.kv, slab, scores);
    }
    if constexpr (kSlices > 1) {
      SumSlices<kSlices>(slice, shared.slices + first_row * kSlices * kWarp, scores);
    }
    float corrections[2] = {1, 1};
    if (seen) Weigh<kType>(args, place, scores, corrections, &state);
    uint32_t a[2][kMetParts<kType>][4];
    float down[2];
#pragma unroll
    for (int i = 0; i < Shape::kSlabs; ++i) {
      if (i * kSlabDims >= head_dim) break;
      slab = kStageSlabs == 1 ? ring.Next(args.kv, rows, key) : slab + Slab<kType>::kBytes;
      if (!seen) continue;
      AddValues<kType, kSlices>(args.kv, place, scores, corrections, slice, slab, i, a, down,
                                &state);
    }
    const int next = key + kStripKeys;
    if (next % kSplitKeys == 0 || next >= rows.end_key) {
      FinishSplit<kType, kSlices>(args, queries, lane_row, slice, key / kSplitKeys, totals, &state);
    }
  }
}

template <DType kType, typename Shape>
cudaError_t LaunchRows(const AttentionArgs& args, LaunchStream stream) {
  return Launch(attention_kernel<kType, Shape>,
                {GridOf(args, Shape::kRows), dim3(Shape::kThreads),
                 AttentionShared<kType, Shape>::Bytes(args.kv.head_dim)},
                stream, args);
}

// Sequences with few rows each, as those that decode, have a block for 16 of them. F32, which is
// three bf16, has registers for more than 128 dimensions only where four warps share them.
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
  if (few) return LaunchFewRows<kType>(args, stream);
  if constexpr (kMeetsF16<kType>) {
    return LaunchRows<kType, AttentionShapeOf<8, 1, 1, 1>>(args, stream);
  } else {  // whose queries are in shared memory
    constexpr int kTiles = kType == DType::kF32 ? 2 : 4;
    return LaunchRows<kType, AttentionShapeOf<kTiles, 1, 1, 8 / kTiles>>(args, stream);
  }
}

}  // namespace llm
