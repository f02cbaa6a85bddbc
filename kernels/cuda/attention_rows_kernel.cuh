// Attention of many rows with heads of up to 128 dimensions: a warp has 16 of a block's rows, and
// what it knows of them stays in its registers from split to split.
#pragma once

#include "kernels/cuda/attention_copies.cuh"
#include "kernels/cuda/attention_part.cuh"
#include "kernels/cuda/launch.cuh"

namespace llm {

// kTiles: of 16 rows in a block. All 16 dimensions of the first of two parts of the queries stay in
// registers; of three parts none do.
template <DType kType, int kTilesOfBlock>
struct RowsShared {
  static constexpr int kTiles = kTilesOfBlock;
  static constexpr int kRows = 16 * kTiles;
  static constexpr int kThreads = kTiles * kWarp;
  static constexpr int kBlocks = kTiles < 8 ? 8 / kTiles : 1;  // of a multiprocessor
  static constexpr int kStages = kMeetsF16<kType> ? 3 : 2;     // strips
  static constexpr int kStageBytes = 2 * Slab<kType>::kBytes;
  static constexpr int kSteps = kMeetsF16<kType> ? kSlabDims / 16 : 0;
  static constexpr int kParts = kSteps > 0 ? 1 : kMetParts<kType>;  // in shared memory

  std::byte* ring;   // [kStages, kStageBytes]
  PartSums* totals;  // [kThreads, 2]: of each lane's rows, which registers have no place for
  AttentionQueries queries;

  static __device__ __forceinline__ RowsShared View(int head_dim) {
    std::byte* memory = DynamicShared<std::byte>();
    PartSums* totals = reinterpret_cast<PartSums*>(memory + kStages * kStageBytes);
    AttentionRow* where = reinterpret_cast<AttentionRow*>(totals + 2 * kThreads);
    float* scales = reinterpret_cast<float*>(where + kRows);
    uint16_t* parts = reinterpret_cast<uint16_t*>(scales + kRows);
    return {memory, totals, {parts, scales, where, kRows, QueryStride(head_dim)}};
  }
  static size_t Bytes(int head_dim) {
    return static_cast<size_t>(kStages * kStageBytes) + 2 * kThreads * sizeof(PartSums) +
           kRows * (sizeof(AttentionRow) + sizeof(float)) +
           static_cast<size_t>(kParts * kRows * QueryStride(head_dim)) * sizeof(uint16_t);
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

template <DType kType, int kTiles>
__global__ void __launch_bounds__(RowsShared<kType, kTiles>::kThreads,
                                  RowsShared<kType, kTiles>::kBlocks)
    attention_rows_kernel(const AttentionArgs args) {
  using Shared = RowsShared<kType, kTiles>;
  const AttentionRows rows = RowsOfBlock(args, Shared::kRows);
  if (rows.count == 0) return;
  const int head_dim = args.kv.head_dim;
  const Shared shared = Shared::View(head_dim);
  const AttentionQueries& queries = shared.queries;
  const int first_strip = rows.first_key / kStripKeys * kStripKeys;
  StripRing<kType, Shared::kThreads, Shared::kStages> ring = {shared.ring, 0, {}};
  ring.Start(args.kv, rows, first_strip);
  const int first_row = WarpIndex() * 16;
  const int lane_row = first_row + Lane() / 4;
  WarpQueries<kType, Shared::kSteps> warp_queries;
  if constexpr (Shared::kSteps > 0) {
    KeepQueries<kType, Shared::kSteps>(args, rows, first_row, queries, warp_queries.kept);
  } else {
    LoadQueries<kType, kTiles>(args, rows, queries);
  }
  __syncthreads();  // the queries are there
  const auto load = [&](int dim, uint32_t(&a)[kMetParts<kType>][4]) {
    warp_queries.Load(queries, first_row, dim, a);
  };
  int key = first_strip;
#pragma unroll 1
  for (int split = key / kSplitKeys; key < rows.end_key; ++split) {
    AttentionState<kSlabGroups> state;
    ClearState(&state);
    const int end = min((split + 1) * kSplitKeys, rows.end_key);
#pragma unroll 1
    for (; key < end; key += kStripKeys) {
      const std::byte* slab = ring.Next(args.kv, rows, key);
      // Read again each time: registers are few.
      const TileKeys keys = KeysOfTile(queries, first_row, rows.count);
      if (!keys.Sees(key)) continue;  // one answer a warp
      const StripPlace place = {&queries, lane_row, key, keys.IsEdge(key)};
      float scores[4][4] = {};
      AddKeys<kType, 1>(load, 0, slab, head_dim, scores);
      ScaleScores<kType>(args.kv, slab, scores);
      float corrections[2];
      Weigh<kType>(args, place, scores, corrections, &state);
      uint32_t a[2][kMetParts<kType>][4];
      float down[2];
      AddValues<kType, 1>(args.kv, place, scores, corrections, 0, slab + Slab<kType>::kBytes, 0, a,
                          down, &state);
    }
    FinishSplit<kType, 1>(args, queries, lane_row, 0, split, shared.totals + 2 * threadIdx.x,
                          &state);
  }
}

template <DType kType, int kTiles>
cudaError_t LaunchManyRows(const AttentionArgs& args, LaunchStream stream) {
  using Shared = RowsShared<kType, kTiles>;
  return Launch(
      attention_rows_kernel<kType, kTiles>,
      {GridOf(args, Shared::kRows), dim3(Shared::kThreads), Shared::Bytes(args.kv.head_dim)},
      stream, args);
}

}  // namespace llm
