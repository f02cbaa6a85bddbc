// f32 activations times weights in blocks, for many rows: each warp unpacks its outputs' weights
// once for all rows of the block, and all warps split the rows, a group of 32 columns ahead.
//
// A group's products are added up from zero, the smallest parts first, then scaled and added to the
// one accumulator of an output: in one order whatever the batch. Tensor cores cut where they add;
// groups of 32 columns keep what that loses as small as what a chain of fmaf rounds.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_blocks.h"
#include "kernels/cuda/linear_store.cuh"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/split_weights.cuh"

namespace llm {

template <int kWarpsIn, int kOutputTilesIn, int kRowTilesIn>
struct SplitMany {
  static constexpr int kThreads = kWarpsIn * kWarp;
  static constexpr int kOutputTiles = kOutputTilesIn;  // of a warp: 16 outputs each
  static constexpr int kRowTiles = kRowTilesIn;        // 8 rows each
  static constexpr int kOutputs = 16 * kOutputTiles * kWarpsIn;
  static constexpr int kRows = 8 * kRowTiles;
  static constexpr int kBlocks = kWarpsIn == 8 ? 1 : 3;  // a multiprocessor
  static_assert(kRows * 4 == kThreads, "eight values of a group a thread");
};
using SplitMiddle = SplitMany<4, 1, 4>;  // 64 outputs, 32 rows
using SplitWide = SplitMany<8, 1, 8>;    // 128, 64
using SplitLarge = SplitMany<8, 2, 8>;   // 256, 64

// Two stages of the largest tile and its rows stay below the 99 KiB that a block of sm_89 may have.
template <typename Block>
constexpr int kManyColumns = Block::kBlockSize > 64 ? Block::kBlockSize
                             : sizeof(Block) < 2 * static_cast<int>(Block::kBlockSize) ? 64
                                                                                       : 32;
template <typename Block, typename Shape>
using SplitManyStage = WeightStage<Block, Shape::kOutputs, kManyColumns<Block>>;
template <typename Block, typename Shape>
using SplitManyRows = SplitRows<SplitBlock<Block>::kF16, Shape::kRows, kActivationGroup>;

template <typename Block, typename Shape>
struct SplitManyShared {
  SplitManyStage<Block, Shape> stages[2];
  SplitManyRows<Block, Shape> rows[2];
};

// Eight columns of a group, of one row; those behind the last are the last.
struct SplitManyValues {
  float4 loads[2];
};

__device__ __forceinline__ void LoadManyValues(const float* row, int group,
                                               SplitManyValues* values) {
  const float4* x = reinterpret_cast<const float4*>(row + int64_t{group} * kActivationGroup);
  values->loads[0] = x[0];
  values->loads[1] = x[1];
}

template <typename Block, typename Shape>
__device__ __forceinline__ void StoreManyValues(SplitManyValues* values,
                                                SplitManyRows<Block, Shape>* rows) {
  const int thread = static_cast<int>(threadIdx.x);
  StoreSplit<SplitBlock<Block>>(values->loads, thread / 4, thread % 4 * 8, rows);
}

template <typename Shape>
using SplitSums = float[Shape::kOutputTiles][Shape::kRowTiles][4];

// A group's columns of the warp's outputs, for `num_rows` rows.
template <typename Block, typename Shape>
__device__ __forceinline__ void AddSplitGroup(
    const SplitFragment<Block> (&weights)[Shape::kOutputTiles],
    const SplitManyRows<Block, Shape>& rows, int num_rows, SplitSums<Shape>& sums) {
  using Fragment = SplitFragment<Block>;
#pragma unroll
  for (int tile = 0; tile < Shape::kRowTiles; ++tile) {
    if (tile * 8 >= num_rows) break;
    uint32_t b[SplitManyRows<Block, Shape>::kParts][4];
    LoadParts(rows, tile * 8, 0, b);
    float2 downs = {1.0f, 1.0f};
    if constexpr (SplitBlock<Block>::kF16) {
      downs = *reinterpret_cast<const float2*>(&rows.downs[tile * 8 + Lane() % 4 * 2]);
    }
#pragma unroll
    for (int i = 0; i < Shape::kOutputTiles; ++i) {
      float terms[Fragment::kHalves][4];
      GroupTerms<Block>(weights[i], b, terms);
#pragma unroll
      for (int half = 0; half < Fragment::kHalves; ++half) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          sums[i][tile][j] = AddTerm<SplitBlock<Block>::kF16>(j % 2 == 0 ? downs.x : downs.y,
                                                              terms[half][j], sums[i][tile][j]);
        }
      }
    }
  }
}

template <typename Block, typename Shape>
__device__ __forceinline__ void LoadFragments(
    const LinearBlocksArgs& args, const SplitManyStage<Block, Shape>& stage, int64_t first_output,
    int step, int group, SplitFragment<Block> (&weights)[Shape::kOutputTiles]) {
#pragma unroll
  for (int i = 0; i < Shape::kOutputTiles; ++i) {
    const int output = (WarpIndex() * Shape::kOutputTiles + i) * 16 + Lane() / 4;
    const std::byte* blocks[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = output + 8 * half;
      blocks[half] = BlocksIn(stage, at, BlocksOf<Block>(args, first_output + at), step);
    }
    weights[i] = LoadSplitFragment<Block>(blocks, group);
  }
}

template <typename Block, typename Shape>
__device__ __forceinline__ void MultiplyMany(const LinearBlocksArgs& all) {
  using Shared = SplitManyShared<Block, Shape>;
  constexpr int kStageRuns = kManyColumns<Block> / kActivationGroup;
  Shared* shared = DynamicShared<Shared>();
  LinearBlocksArgs args = all;
  const BlockTile at = FindBlockTile();
  const int64_t first_output = SelectTarget(all, Shape::kOutputs, at.outputs, &args);
  const RowTile tile = SelectExpert(Shape::kRows, at.rows, &args.activations.rows, &args);
  if (tile.expert < 0) return;
  const Activations& a = args.activations;
  const int64_t left = a.rows - tile.first_row;
  const int num_rows = left < Shape::kRows ? static_cast<int>(left) : Shape::kRows;
  const int num_groups = static_cast<int>(a.cols / kActivationGroup);
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / 4 < num_rows ? thread / 4 : num_rows - 1;
  const float* values_row = a.values + (tile.first_row + row) * a.cols + thread % 4 * 8;
  const CopySource copied =
      FindCopies<SplitManyStage<Block, Shape>, Shape::kThreads>(args, first_output);
  CopyStage<Shape::kThreads>(args, copied, 0, &shared->stages[0]);
  CommitCopies();
  SplitManyValues values;
  LoadManyValues(values_row, 0, &values);
  StoreManyValues<Block, Shape>(&values, &shared->rows[0]);
  if (num_groups > 1) LoadManyValues(values_row, 1, &values);
  SplitSums<Shape> sums = {};
#pragma unroll 1
  for (int group = 0; group < num_groups; ++group) {
    const int step = group / kStageRuns;
    const bool begins = group % kStageRuns == 0;
    if (begins) WaitCopies<0>();
    // The group is there, and all warps are through with the one before it.
    __syncthreads();
    if (begins && (step + 1) * kStageRuns < num_groups) {
      CopyStage<Shape::kThreads>(args, copied, step + 1, &shared->stages[(step + 1) % 2]);
      CommitCopies();
    }
    SplitFragment<Block> weights[Shape::kOutputTiles];
    LoadFragments<Block, Shape>(args, shared->stages[step % 2], first_output, step,
                                group % kStageRuns, weights);
    if (group + 1 < num_groups) {
      StoreManyValues<Block, Shape>(&values, &shared->rows[(group + 1) % 2]);
    }
    if (group + 2 < num_groups) LoadManyValues(values_row, group + 2, &values);
    AddSplitGroup<Block, Shape>(weights, shared->rows[group % 2], num_rows, sums);
  }
#pragma unroll
  for (int i = 0; i < Shape::kOutputTiles; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kRowTiles; ++j) {
      StoreSums(args, first_output + (WarpIndex() * Shape::kOutputTiles + i) * 16,
                tile.first_row + j * 8, a.rows, sums[i][j]);
    }
  }
}

// A function of its own name for each shape: what reads compilers' reports finds it by that.
template <typename Block>
__global__ void __launch_bounds__(SplitMiddle::kThreads, SplitMiddle::kBlocks)
    linear_split_middle_kernel(const LinearBlocksArgs args) {
  MultiplyMany<Block, SplitMiddle>(args);
}
template <typename Block>
__global__ void __launch_bounds__(SplitWide::kThreads, SplitWide::kBlocks)
    linear_split_wide_kernel(const LinearBlocksArgs args) {
  MultiplyMany<Block, SplitWide>(args);
}
template <typename Block>
__global__ void __launch_bounds__(SplitLarge::kThreads, SplitLarge::kBlocks)
    linear_split_large_kernel(const LinearBlocksArgs args) {
  MultiplyMany<Block, SplitLarge>(args);
}

template <typename Shape>
dim3 SplitGrid(const LinearBlocksArgs& args) {
  return TileGrid(NumOutputTiles(args, Shape::kOutputs),
                  NumRowTiles(args.experts, args.activations.rows, Shape::kRows));
}

// Blocks for most multiprocessors: a larger tile reads less.
template <typename Shape>
bool Fills(const LinearBlocksArgs& args, int multiprocessors) {
  return NumBlocks(SplitGrid<Shape>(args)) * 10 >= int64_t{multiprocessors} * 8 &&
         !AreMostlyEmpty(args.experts, args.activations.rows, Shape::kRows);
}

template <typename Block, typename Shape>
cudaError_t LaunchSplitShape(void (*kernel)(LinearBlocksArgs), const LinearBlocksArgs& args,
                             LaunchStream stream) {
  return Launch(
      kernel,
      {SplitGrid<Shape>(args), dim3(Shape::kThreads), sizeof(SplitManyShared<Block, Shape>)},
      stream, args);
}

// Weights of integers have no large tile: their scales and minimums leave no registers for it.
template <typename Block>
cudaError_t LaunchSplitMany(const LinearBlocksArgs& args, LaunchStream stream) {
  int count = 0;
  if (const cudaError_t error = CountMultiprocessors(&count); error != cudaSuccess) return error;
  if constexpr (IsPlainSplit<Block>()) {
    if (Fills<SplitLarge>(args, count)) {
      return LaunchSplitShape<Block, SplitLarge>(linear_split_large_kernel<Block>, args, stream);
    }
  }
  if (Fills<SplitWide>(args, count)) {
    return LaunchSplitShape<Block, SplitWide>(linear_split_wide_kernel<Block>, args, stream);
  }
  return LaunchSplitShape<Block, SplitMiddle>(linear_split_middle_kernel<Block>, args, stream);
}

}  // namespace llm
