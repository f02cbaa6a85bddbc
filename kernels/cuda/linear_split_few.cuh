// f32 activations times weights in blocks, for up to 8 rows: the four warps of a block share 16
// outputs, each with every fourth group of 32 columns, so that a small matrix still fills the
// device and its bytes are asked for well ahead. What the groups give is added up afterwards, a
// thread an output and row, in the order that linear_split_many.cuh has.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_blocks.h"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/split_weights.cuh"

namespace llm {

struct SplitFew {
  static constexpr int kWarps = 4;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kOutputs = 16;
  static constexpr int kRows = 8;
  static constexpr int kStages = 6;
  static constexpr int kBlocks = 3;             // a multiprocessor
  static constexpr int kStride = kOutputs + 4;  // of terms: rows 2 apart lie in different banks
  // A warp splits half of a row's stage at a time, a float4 a lane.
  static constexpr int kUnitColumns = 4 * kWarp;
  static constexpr int kRowUnits = kStageColumns / kUnitColumns;
  static constexpr int kLoads = kRows * kRowUnits / kWarps;
};
static_assert(SplitFew::kOutputs * SplitFew::kRows == SplitFew::kThreads, "a thread a sum");

template <typename Block>
using SplitFewStage = WeightStage<Block, SplitFew::kOutputs, kStageColumns>;
template <typename Block>
using SplitFewRows = SplitRows<SplitBlock<Block>::kF16, SplitFew::kRows, kStageColumns>;

template <typename Block>
struct SplitFewShared {
  SplitFewStage<Block> stages[SplitFew::kStages];
  SplitFewRows<Block> rows[2];
  float terms[kStageGroups][SplitFragment<Block>::kHalves][SplitFew::kRows][SplitFew::kStride];
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

// What every fourth group of the stage gives. `blocks` are those of the lane's two outputs.
template <typename Block>
__device__ __forceinline__ void StoreSplitTerms(const std::byte* const (&blocks)[2], int num_groups,
                                                const SplitFewRows<Block>& rows,
                                                SplitFewShared<Block>* shared) {
  using Fragment = SplitFragment<Block>;
  const int lane = Lane();
#pragma unroll
  for (int i = 0; i < kStageGroups / SplitFew::kWarps; ++i) {
    const int group = WarpIndex() + i * SplitFew::kWarps;
    if (group >= num_groups) break;
    const Fragment weights = LoadSplitFragment<Block>(blocks, group);
    uint32_t b[SplitFewRows<Block>::kParts][4];
    LoadParts(rows, 0, group * kActivationGroup, b);
    float terms[Fragment::kHalves][4];
    GroupTerms<Block>(weights, b, terms);
#pragma unroll
    for (int half = 0; half < Fragment::kHalves; ++half) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        shared->terms[group][half][lane % 4 * 2 + j % 2][lane / 4 + j / 2 * 8] = terms[half][j];
      }
    }
  }
}

// In the order of groups.
template <typename Block>
__device__ __forceinline__ float AddSplitTerms(const SplitFewShared<Block>& shared,
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

template <typename Block>
__global__ void __launch_bounds__(SplitFew::kThreads, SplitFew::kBlocks)
    linear_split_few_kernel(const LinearBlocksArgs all) {
  using Shape = SplitFew;
  SplitFewShared<Block>* shared = DynamicShared<SplitFewShared<Block>>();
  LinearBlocksArgs args = all;
  const RowTile tile = SelectExpert(Shape::kRows, &args.activations.rows, &args);
  if (tile.expert < 0) return;
  const Activations& a = args.activations;
  const int64_t left = a.rows - tile.first_row;
  const int num_rows = left < Shape::kRows ? static_cast<int>(left) : Shape::kRows;
  const int num_steps = static_cast<int>((a.cols + kStageColumns - 1) / kStageColumns);
  const int64_t first_output = static_cast<int64_t>(blockIdx.x) * Shape::kOutputs;
  const int thread = static_cast<int>(threadIdx.x);
  const CopySource copied = FindCopies<SplitFewStage<Block>, Shape::kThreads>(args, first_output);
  for (int step = 0; step < Shape::kStages - 1; ++step) {
    if (step < num_steps) CopyStage<Shape::kThreads>(args, copied, step, &shared->stages[step]);
    CommitCopies();
  }
  const float* from =
      a.values + (tile.first_row + WarpIndex() / Shape::kRowUnits) * a.cols + FewColumn();
  SplitFewValues values;
  LoadFewValues(a, from, num_rows, 0, &values);
  ClearRows<Block>(num_rows, shared->rows);
  StoreFewValues<Block>(values, num_rows, &shared->rows[0]);
  if (num_steps > 1) LoadFewValues(a, from, num_rows, 1, &values);
  const std::byte* begins[2] = {BlocksOf<Block>(args, first_output + Lane() / 4),
                                BlocksOf<Block>(args, first_output + Lane() / 4 + 8)};
  const int output = thread % Shape::kOutputs;
  const int row = thread / Shape::kOutputs;
  float sum = 0;
  int stage = 0;
  for (int step = 0; step < num_steps; ++step) {
    WaitCopies<Shape::kStages - 2>();
    // The stage and the step's rows are there; the terms before have been added.
    __syncthreads();
    const int next = step + Shape::kStages - 1;
    const int free = stage == 0 ? Shape::kStages - 1 : stage - 1;
    if (next < num_steps) {
      CopyStage<Shape::kThreads>(args, copied, next, &shared->stages[free]);
    }
    CommitCopies();  // also when empty: groups are counted
    if (step + 1 < num_steps) {
      StoreFewValues<Block>(values, num_rows, &shared->rows[(step + 1) % 2]);
    }
    if (step + 2 < num_steps) LoadFewValues(a, from, num_rows, step + 2, &values);
    const int num_groups = StepColumns(args, step) / kActivationGroup;
    const SplitFewStage<Block>& weights = shared->stages[stage];
    const std::byte* blocks[2] = {BlocksIn(weights, Lane() / 4, begins[0], step),
                                  BlocksIn(weights, Lane() / 4 + 8, begins[1], step)};
    StoreSplitTerms<Block>(blocks, num_groups, shared->rows[step % 2], shared);
    __syncthreads();  // the terms are there
    if (row < num_rows) {
      sum = AddSplitTerms(*shared, shared->rows[step % 2], num_groups, row, output, sum);
    }
    stage = stage == Shape::kStages - 1 ? 0 : stage + 1;
  }
  const int64_t at = first_output + output;
  if (row >= num_rows || at >= args.outputs) return;
  args.out[(tile.first_row + row) * args.out_stride + at] =
      sum + (args.bias != nullptr ? args.bias[at] : 0.0f);
}

template <typename Block>
cudaError_t LaunchSplitFew(const LinearBlocksArgs& args, cudaStream_t stream) {
  using Shape = SplitFew;
  const dim3 grid(static_cast<unsigned>((args.outputs + Shape::kOutputs - 1) / Shape::kOutputs),
                  NumRowTiles(args.experts, args.activations.rows, Shape::kRows));
  return Launch(linear_split_few_kernel<Block>,
                {grid, dim3(Shape::kThreads), sizeof(SplitFewShared<Block>)}, stream, args);
}

}  // namespace llm
