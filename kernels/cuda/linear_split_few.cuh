// f32 activations times weights in blocks, for up to 8 rows: the four warps of a block share 16 or
// 32 outputs, each with every fourth group of 32 columns, so that a small matrix still fills the
// device and its bytes are asked for well ahead. What the groups give is added up afterwards, a
// thread an output and some rows, in the order that linear_split_many.cuh has.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_blocks.h"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/split_weights.cuh"

namespace llm {

struct SplitFew {
  static constexpr int kWarps = 4;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kRows = 8;
  static constexpr int kMostStages = 6;
  // All of them: with the rows two or three blocks a multiprocessor, of the wide formats on sm_80
  // one.
  static constexpr int kStageBytes = 52 * 1024;
  static constexpr int kBlocks = 3;
  // A warp splits half of a row's stage at a time, a float4 a lane.
  static constexpr int kUnitColumns = 4 * kWarp;
  static constexpr int kRowUnits = kStageColumns / kUnitColumns;
  static constexpr int kLoads = kRows * kRowUnits / kWarps;
};

template <typename Block, int kTiles>
using SplitFewStage = WeightStage<Block, 16 * kTiles, kStageColumns>;
template <typename Block>
using SplitFewRows = SplitRows<SplitBlock<Block>::kF16, SplitFew::kRows, kStageColumns>;

template <typename Block, int kTiles>
struct SplitFewShared {
  using Stage = SplitFewStage<Block, kTiles>;
  static constexpr int kFitting = SplitFew::kStageBytes / static_cast<int>(sizeof(Stage));
  static constexpr int kStages =
      kFitting < SplitFew::kMostStages ? kFitting : SplitFew::kMostStages;
  static constexpr int kStride = 16 * kTiles + 4;  // of terms: rows 2 apart in different banks

  Stage stages[kStages];
  SplitFewRows<Block> rows[2];
  float terms[kStageGroups][SplitFragment<Block>::kHalves][SplitFew::kRows][kStride];
};

// A lane's column in each stage.
__device__ __forceinline__ int FewColumn() {
  return WarpIndex() % SplitFew::kRowUnits * SplitFew::kUnitColumns + Lane() * 4;
}

// A warp's share of a stage's activations: the same half of every second row that exists; zero
// beyond the last column.
struct SplitFewValues {
  float4 loads[SplitFew::kLoads];
};
static_assert(SplitFew::kWarps == 2 * SplitFew::kRowUnits);

// `from` is the lane's place in the first stage of the warp's first row.
__device__ __forceinline__ void LoadFewValues(const Activations& a, const float* from, int num_rows,
                                              int step, SplitFewValues* values) {
  const int row = WarpIndex() / SplitFew::kRowUnits;
  const int64_t first_col = int64_t{step} * kStageColumns;
  const bool inside = first_col + FewColumn() < a.cols;
#pragma unroll
  for (int i = 0; i < SplitFew::kLoads; ++i) {
    if (row + 2 * i >= num_rows) break;
    values->loads[i] = {0, 0, 0, 0};
    if (!inside) continue;
    values->loads[i] = *reinterpret_cast<const float4*>(from + 2 * i * a.cols + first_col);
  }
}

template <typename Block>
__device__ __forceinline__ void StoreFewValues(const SplitFewValues& values, int num_rows,
                                               SplitFewRows<Block>* rows) {
#pragma unroll
  for (int i = 0; i < SplitFew::kLoads; ++i) {
    const int row = WarpIndex() / SplitFew::kRowUnits + 2 * i;
    if (row >= num_rows) break;
    float4 x[1] = {values.loads[i]};
    StoreSplit<SplitBlock<Block>>(x, row, FewColumn(), rows);
  }
}

// Rows that do not exist are zeros.
template <typename Block>
__device__ __forceinline__ void ClearRows(int num_rows, SplitFewRows<Block> (&rows)[2]) {
  constexpr int kWords = (kStageColumns + 8) / 2;
  const int count = 2 * SplitFewRows<Block>::kParts * (SplitFew::kRows - num_rows);
  for (int i = WarpIndex(); i < count; i += SplitFew::kWarps) {
    const int row = num_rows + i / (2 * SplitFewRows<Block>::kParts);
    uint16_t* to = rows[i % 2].parts[i / 2 % SplitFewRows<Block>::kParts][row];
    for (int word = Lane(); word < kWords; word += kWarp) {
      reinterpret_cast<uint32_t*>(to)[word] = 0;
    }
  }
}

// What every fourth group of a stage gives. `begins` are where the lane's outputs begin.
template <typename Block, int kTiles>
__device__ __forceinline__ void StoreSplitTerms(const SplitFewStage<Block, kTiles>& stage,
                                                const std::byte* const (&begins)[kTiles][2],
                                                int step, int num_groups,
                                                SplitFewShared<Block, kTiles>* shared) {
  using Fragment = SplitFragment<Block>;
  const int lane = Lane();
  const SplitFewRows<Block>& rows = shared->rows[step % 2];
  const std::byte* blocks[kTiles][2];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      blocks[tile][half] =
          BlocksIn(stage, tile * 16 + half * 8 + lane / 4, begins[tile][half], step);
    }
  }
#pragma unroll
  for (int i = 0; i < kStageGroups / SplitFew::kWarps; ++i) {
    const int group = WarpIndex() + i * SplitFew::kWarps;
    if (group >= num_groups) break;
    uint32_t b[SplitFewRows<Block>::kParts][4];
    LoadParts(rows, 0, group * kActivationGroup, b);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const Fragment weights = LoadSplitFragment<Block>(blocks[tile], group);
      float terms[Fragment::kHalves][4];
      GroupTerms<Block>(weights, b, terms);
#pragma unroll
      for (int half = 0; half < Fragment::kHalves; ++half) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int output = tile * 16 + lane / 4 + j / 2 * 8;
          shared->terms[group][half][lane % 4 * 2 + j % 2][output] = terms[half][j];
        }
      }
    }
  }
}

// In the order of groups.
template <typename Block, int kTiles>
__device__ __forceinline__ float AddSplitTerms(const SplitFewShared<Block, kTiles>& shared,
                                               const SplitFewRows<Block>& rows, int num_groups,
                                               int row, int output, float sum) {
  constexpr bool kF16 = SplitBlock<Block>::kF16;
  constexpr int kHalves = SplitFragment<Block>::kHalves;
  const auto add = [&](int group, int half) {
    sum = AddTerm<kF16>(rows.downs[row][group], shared.terms[group][half][row][output], sum);
  };
  if (num_groups == kStageGroups) {  // the loads of all before the first sum
#pragma unroll
    for (int i = 0; i < kStageGroups * kHalves; ++i) add(i / kHalves, i % kHalves);
  } else {
#pragma unroll 1
    for (int i = 0; i < num_groups * kHalves; ++i) add(i / kHalves, i % kHalves);
  }
  return sum;
}

template <typename Block, int kTiles>
__global__ void __launch_bounds__(SplitFew::kThreads, SplitFew::kBlocks)
    linear_split_few_kernel(const LinearBlocksArgs all) {
  using Shape = SplitFew;
  using Shared = SplitFewShared<Block, kTiles>;
  using Stage = typename Shared::Stage;
  constexpr int kInFlight = Shared::kStages - 1;
  constexpr int kRowStep = Shape::kRows / kTiles;  // between the rows of a thread's sums
  Shared* shared = DynamicShared<Shared>();
  LinearBlocksArgs args = all;
  const int64_t first_output = SelectTarget(all, Stage::kOutputs, blockIdx.x, &args);
  const RowTile tile = SelectExpert(Shape::kRows, &args.activations.rows, &args);
  if (tile.expert < 0) return;
  const Activations& a = args.activations;
  const int64_t left = a.rows - tile.first_row;
  const int num_rows = left < Shape::kRows ? static_cast<int>(left) : Shape::kRows;
  const int num_steps = static_cast<int>((a.cols + kStageColumns - 1) / kStageColumns);
  const CopySource copied = FindCopies<Stage, Shape::kThreads>(args, first_output);
  for (int step = 0; step < kInFlight; ++step) {
    if (step < num_steps) CopyStage<Shape::kThreads>(args, copied, step, &shared->stages[step]);
    CommitCopies();
  }
  const int64_t first_row = tile.first_row + WarpIndex() / Shape::kRowUnits;
  const float* from = a.values + first_row * a.cols + FewColumn();
  SplitFewValues values;
  LoadFewValues(a, from, num_rows, 0, &values);
  ClearRows<Block>(num_rows, shared->rows);
  StoreFewValues<Block>(values, num_rows, &shared->rows[0]);
  if (num_steps > 1) LoadFewValues(a, from, num_rows, 1, &values);
  const std::byte* begins[kTiles][2];
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i) {
    begins[i / 2][i % 2] = BlocksOf<Block>(args, first_output + i * 8 + Lane() / 4);
  }
  const int output = static_cast<int>(threadIdx.x) % Stage::kOutputs;
  const int row = static_cast<int>(threadIdx.x) / Stage::kOutputs;
  float sums[kTiles] = {};
  int stage = 0;
  for (int step = 0; step < num_steps; ++step) {
    WaitCopies<kInFlight - 1>();
    // The stage and the step's rows are there; the terms before have been added.
    __syncthreads();
    const int next = step + kInFlight;
    const int free = stage == 0 ? kInFlight : stage - 1;
    if (next < num_steps) {
      CopyStage<Shape::kThreads>(args, copied, next, &shared->stages[free]);
    }
    CommitCopies();  // also when empty: groups are counted
    if (step + 1 < num_steps) {
      StoreFewValues<Block>(values, num_rows, &shared->rows[(step + 1) % 2]);
    }
    if (step + 2 < num_steps) LoadFewValues(a, from, num_rows, step + 2, &values);
    const int num_groups = StepColumns(args, step) / kActivationGroup;
    StoreSplitTerms<Block, kTiles>(shared->stages[stage], begins, step, num_groups, shared);
    __syncthreads();  // the terms are there
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      if (row + i * kRowStep >= num_rows) break;
      sums[i] = AddSplitTerms(*shared, shared->rows[step % 2], num_groups, row + i * kRowStep,
                              output, sums[i]);
    }
    stage = stage == kInFlight ? 0 : stage + 1;
  }
  const int64_t at = first_output + output;
  if (at >= args.outputs) return;
  const float bias = args.bias != nullptr ? args.bias[at] : 0.0f;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    if (row + i * kRowStep >= num_rows) break;
    args.out[(tile.first_row + row + i * kRowStep) * args.out_stride + at] = sums[i] + bias;
  }
}

template <typename Block, int kTiles>
cudaError_t LaunchFewTiles(const LinearBlocksArgs& args, dim3 grid, LaunchStream stream) {
  return Launch(linear_split_few_kernel<Block, kTiles>,
                {grid, dim3(SplitFew::kThreads), sizeof(SplitFewShared<Block, kTiles>)}, stream,
                args);
}

// 32 outputs a block where that leaves two for each multiprocessor: rows are split for more at
// once.
template <typename Block>
cudaError_t LaunchSplitFew(const LinearBlocksArgs& args, LaunchStream stream) {
  const unsigned row_tiles = NumRowTiles(args.experts, args.activations.rows, SplitFew::kRows);
  if constexpr (IsPlainSplit<Block>()) {
    int count = 0;
    if (const cudaError_t error = CountMultiprocessors(&count); error != cudaSuccess) return error;
    const dim3 grid = TileGrid(NumOutputTiles(args, 32), row_tiles);
    if (NumBlocks(grid) >= 2 * count) return LaunchFewTiles<Block, 2>(args, grid, stream);
  }
  const dim3 grid = TileGrid(NumOutputTiles(args, 16), row_tiles);
  return LaunchFewTiles<Block, 1>(args, grid, stream);
}

}  // namespace llm
