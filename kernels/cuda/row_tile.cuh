// Which rows a block of threads works on, and whose weight they meet.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/tile_grid.h"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {

struct RowTile {
  int expert;  // -1: no rows are left for this block
  int64_t first_row;
  int64_t end_row;  // of the expert: the tile may be shorter
};

// Blocks that cover all tiles of `tile_rows` rows, whatever the experts' shares are: as many tiles
// as the rows fill, and one more for each expert.
inline unsigned NumRowTiles(const ExpertRows& experts, int64_t rows, int tile_rows) {
  if (experts.begin == nullptr) {
    const int64_t share = rows / experts.count;
    return static_cast<unsigned>((share + tile_rows - 1) / tile_rows * experts.count);
  }
  const int64_t partly = rows < experts.count ? rows : experts.count;
  return static_cast<unsigned>(rows / tile_rows + partly);
}

// Whether the experts' shares leave most of such tiles less than half full.
inline bool AreMostlyEmpty(const ExpertRows& experts, int64_t rows, int tile_rows) {
  return experts.begin != nullptr && rows < int64_t{experts.count} * tile_rows / 2;
}

__device__ __forceinline__ unsigned RowTileOfBlock() { return blockIdx.z * gridDim.y + blockIdx.y; }

__device__ __forceinline__ RowTile FindInShares(const ExpertRows& experts, int64_t rows,
                                                int tile_rows, int index) {
  const int64_t share = rows / experts.count;
  const int tiles = static_cast<int>((share + tile_rows - 1) / tile_rows);
  if (index / tiles >= experts.count) return {-1, 0, 0};
  const int64_t first = index / tiles * share;
  return {index / tiles, first + int64_t{index % tiles} * tile_rows, first + share};
}

// Tile `index` of all. Called by whole warps; each finds the same: 32 experts at a time, their
// tiles added up across the lanes.
__device__ __forceinline__ RowTile FindRowTile(const ExpertRows& experts, int64_t rows,
                                               int tile_rows, int index) {
  if (experts.begin == nullptr) return FindInShares(experts, rows, tile_rows, index);
  for (int first = 0; first < experts.count; first += kWarp) {
    const int expert = first + Lane();
    const int begin = expert < experts.count ? experts.begin[expert] : 0;
    const int end = expert < experts.count ? experts.begin[expert + 1] : 0;
    const int tiles = (end - begin + tile_rows - 1) / tile_rows;
    int up_to = tiles;  // this lane's and those of the lanes before
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int before = __shfl_up_sync(kAllLanes, up_to, static_cast<unsigned>(offset));
      if (Lane() >= offset) up_to += before;
    }
    const int total = __shfl_sync(kAllLanes, up_to, kWarp - 1);
    if (index < total) {
      const int owner = __ffs(static_cast<int>(__ballot_sync(kAllLanes, up_to > index))) - 1;
      const int skipped = __shfl_sync(kAllLanes, up_to - tiles, owner);
      const int owner_begin = __shfl_sync(kAllLanes, begin, owner);
      const int owner_end = __shfl_sync(kAllLanes, end, owner);
      return {first + owner, owner_begin + (index - skipped) * tile_rows, owner_end};
    }
    index -= total;
  }
  return {-1, 0, 0};
}

template <typename Args>
unsigned NumOutputTiles(const Args& args, int tile_outputs) {
  int64_t tiles = (args.outputs + tile_outputs - 1) / tile_outputs;
  for (int i = 0; i < args.more.count; ++i) {
    tiles += (args.more.targets[i].outputs + tile_outputs - 1) / tile_outputs;
  }
  return static_cast<unsigned>(tiles);
}

// Tile `index` of all targets' outputs: the first output. `args` becomes what its target has.
template <typename Args>
__device__ __forceinline__ int64_t SelectTarget(const Args& all, int tile_outputs, int64_t index,
                                                Args* args) {
#pragma unroll
  for (int i = 0; i < kMostTargets - 1; ++i) {
    const int64_t tiles = (args->outputs + tile_outputs - 1) / tile_outputs;
    if (index < tiles || i >= all.more.count) break;
    index -= tiles;
    const LinearTarget& target = all.more.targets[i];
    args->weight = target.weight;
    args->experts.weight_bytes = target.weight_bytes;
    args->outputs = target.outputs;
    args->bias = target.bias;
    args->out = target.out;
    args->out_stride = target.out_stride;
  }
  return index * tile_outputs;
}

struct BlockTile {
  unsigned outputs;
  unsigned rows;
};

// Blocks that run at the same time have 8 tiles of rows and as many outputs as that leaves, so that
// both come out of the second-level cache.
__device__ __forceinline__ BlockTile FindBlockTile() {
  constexpr unsigned kGrouped = 8;
  const unsigned index = RowTileOfBlock() * gridDim.x + blockIdx.x;
  const unsigned first = index / (kGrouped * gridDim.x) * kGrouped;
  const unsigned left = gridDim.y * gridDim.z - first;
  const unsigned tiles = left < kGrouped ? left : kGrouped;
  const unsigned within = index - first * gridDim.x;
  return {within / tiles, first + within % tiles};
}

// Tile `index`; `args` becomes what its expert alone has, up to its last row.
template <typename Args>
__device__ __forceinline__ RowTile SelectExpert(int tile_rows, unsigned index, int64_t* rows,
                                                Args* args) {
  const RowTile tile = FindRowTile(args->experts, *rows, tile_rows, static_cast<int>(index));
  if (tile.expert < 0) return tile;
  *rows = tile.end_row;
  args->weight += tile.expert * args->experts.weight_bytes;
  if (args->bias != nullptr) args->bias += tile.expert * args->outputs;
  return tile;
}
// That of this block.
template <typename Args>
__device__ __forceinline__ RowTile SelectExpert(int tile_rows, int64_t* rows, Args* args) {
  return SelectExpert(tile_rows, RowTileOfBlock(), rows, args);
}

}  // namespace llm
