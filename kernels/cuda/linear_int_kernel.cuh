// The kernels of int8 activations times weights of integers: one for few rows, one for many, with
// the same bits. Included by the files that instantiate them for some formats each.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_blocks.h"
#include "kernels/cuda/linear_int.cuh"

namespace llm {

constexpr int kIntWarps = 4;
constexpr int kIntThreads = kIntWarps * kWarp;

// Many rows: a warp has 16 outputs of 64 rows, whose weights it unpacks once.
struct ManyRows {
  static constexpr int kOutputs = 16 * kIntWarps;
  static constexpr int kRows = 64;
  static constexpr int kStages = 2;
  static constexpr int kBlocks = 2;  // a multiprocessor: 2 x 85 KiB at most
};

// Few rows: the warps of a block share 16 outputs, each with every fourth group, so that a small
// matrix still fills the device and its bytes are asked for well ahead. What the groups give is
// added up afterwards, a thread an output and row.
struct FewRows {
  static constexpr int kOutputs = 16;
  static constexpr int kRows = 8;
  static constexpr int kStages = 5;
  static constexpr int kBlocks = 4;
  static constexpr int kStride = kOutputs + 4;  // of terms: rows 2 apart lie in different banks
};
static_assert(FewRows::kOutputs * FewRows::kRows == kIntThreads, "a thread an output and row");

template <typename Block>
using ManyRowsStage = IntStage<Block, ManyRows::kOutputs, ManyRows::kRows>;
template <typename Block>
using FewRowsStage = IntStage<Block, FewRows::kOutputs, FewRows::kRows>;

template <typename Block>
struct FewRowsShared {
  FewRowsStage<Block> stages[FewRows::kStages];
  float terms[kStageGroups][IntFragment<Block>::kHalves][FewRows::kRows][FewRows::kStride];
};

__device__ __forceinline__ void StoreIntSum(const LinearBlocksArgs& args, int64_t output,
                                            int64_t row, float sum) {
  if (output >= args.outputs || row >= args.activations.rows) return;
  const float bias = args.bias != nullptr ? args.bias[output] : 0.0f;
  args.out[row * args.out_stride + output] = sum + bias;
}

// A stage's columns of the warp's 16 outputs, for up to `num_rows` of the 64.
template <typename Block>
__device__ __forceinline__ void AddIntStage(const ManyRowsStage<Block>& stage,
                                            const std::byte* const (&rows)[2], int num_groups,
                                            int64_t num_rows,
                                            float (&sums)[ManyRows::kRows / 8][4]) {
  const int lane = Lane();
#pragma unroll 1
  for (int group = 0; group < num_groups; ++group) {
    const IntFragment<Block> weights = LoadIntFragment<Block>(rows, group);
#pragma unroll
    for (int tile = 0; tile < ManyRows::kRows / 8; ++tile) {
      if (tile * 8 >= num_rows) break;
      uint32_t activations[2];
      LoadMatrix2(activations,
                  &stage.quants[tile * 8 + lane % 8][group * kActivationGroup + lane / 8 % 2 * 16]);
      const int row = tile * 8 + lane % 4 * 2;
      const uint2 row_sums = *reinterpret_cast<const uint2*>(&stage.sums[group][row]);
      const float2 scales = *reinterpret_cast<const float2*>(&stage.scales[group][row]);
#pragma unroll
      for (int half = 0; half < IntFragment<Block>::kHalves; ++half) {
        float terms[4];
        MultiplyGroup(weights, half, activations, row_sums, terms);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums[tile][i] = fmaf(i % 2 == 0 ? scales.x : scales.y, terms[i], sums[tile][i]);
        }
      }
    }
  }
}

template <typename Block>
__global__ void __launch_bounds__(kIntThreads, ManyRows::kBlocks)
    linear_int_kernel(const LinearBlocksArgs all) {
  using Shape = ManyRows;
  ManyRowsStage<Block>* stages = DynamicShared<ManyRowsStage<Block>>();  // [kStages]
  LinearBlocksArgs args = all;
  const RowTile tile = SelectExpert(Shape::kRows, &args.activations.rows, &args);
  if (tile.expert < 0) return;
  const int64_t first_output = static_cast<int64_t>(blockIdx.x) * Shape::kOutputs;
  const int64_t num_steps = (args.activations.cols + kStageColumns - 1) / kStageColumns;
  LoadIntStage<kIntThreads>(args, first_output, tile.first_row, 0, &stages[0]);
  CommitCopies();
  float sums[Shape::kRows / 8][4] = {};
  for (int64_t step = 0; step < num_steps; ++step) {
    WaitCopies<0>();
    // The stage has come in whole, and all warps are through with the one before it.
    __syncthreads();
    if (step + 1 < num_steps) {
      LoadIntStage<kIntThreads>(args, first_output, tile.first_row, step + 1,
                                &stages[(step + 1) % Shape::kStages]);
    }
    CommitCopies();
    const ManyRowsStage<Block>& stage = stages[step % Shape::kStages];
    const std::byte* rows[2];
    FindBlockRows(args, stage.weights, first_output, WarpIndex() * 16 + Lane() / 4, step, rows);
    AddIntStage<Block>(stage, rows, StepColumns(args, step) / kActivationGroup,
                       args.activations.rows - tile.first_row, sums);
  }
#pragma unroll
  for (int rows = 0; rows < Shape::kRows / 8; ++rows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      StoreIntSum(args, first_output + WarpIndex() * 16 + Lane() / 4 + i / 2 * 8,
                  tile.first_row + rows * 8 + Lane() % 4 * 2 + i % 2, sums[rows][i]);
    }
  }
}

// What every fourth group of the stage gives.
template <typename Block>
__device__ __forceinline__ void StoreTerms(const FewRowsStage<Block>& stage,
                                           const std::byte* const (&rows)[2], int num_groups,
                                           FewRowsShared<Block>* shared) {
  const int lane = Lane();
  for (int group = WarpIndex(); group < num_groups; group += kIntWarps) {
    const IntFragment<Block> weights = LoadIntFragment<Block>(rows, group);
    uint32_t activations[2];
    LoadMatrix2(activations, &stage.quants[lane % 8][group * kActivationGroup + lane / 8 % 2 * 16]);
    const uint2 sums = *reinterpret_cast<const uint2*>(&stage.sums[group][lane % 4 * 2]);
#pragma unroll
    for (int half = 0; half < IntFragment<Block>::kHalves; ++half) {
      float terms[4];
      MultiplyGroup(weights, half, activations, sums, terms);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        shared->terms[group][half][lane % 4 * 2 + i % 2][lane / 4 + i / 2 * 8] = terms[i];
      }
    }
  }
}

template <typename Block>
__global__ void __launch_bounds__(kIntThreads, FewRows::kBlocks)
    linear_int_few_kernel(const LinearBlocksArgs all) {
  using Shape = FewRows;
  FewRowsShared<Block>* shared = DynamicShared<FewRowsShared<Block>>();
  LinearBlocksArgs args = all;
  const RowTile tile = SelectExpert(Shape::kRows, &args.activations.rows, &args);
  if (tile.expert < 0) return;
  const int64_t first_output = static_cast<int64_t>(blockIdx.x) * Shape::kOutputs;
  const int64_t num_steps = (args.activations.cols + kStageColumns - 1) / kStageColumns;
  for (int64_t step = 0; step < Shape::kStages - 1; ++step) {
    if (step < num_steps) {
      LoadIntStage<kIntThreads>(args, first_output, tile.first_row, step, &shared->stages[step]);
    }
    CommitCopies();
  }
  const int output = static_cast<int>(threadIdx.x) % Shape::kOutputs;
  const int row = static_cast<int>(threadIdx.x) / Shape::kOutputs;
  float sum = 0;
  for (int64_t step = 0; step < num_steps; ++step) {
    WaitCopies<Shape::kStages - 2>();
    __syncthreads();  // the stage has come in whole, the terms before have been added
    const int64_t next = step + Shape::kStages - 1;
    if (next < num_steps) {
      LoadIntStage<kIntThreads>(args, first_output, tile.first_row, next,
                                &shared->stages[next % Shape::kStages]);
    }
    CommitCopies();
    const FewRowsStage<Block>& stage = shared->stages[step % Shape::kStages];
    const int num_groups = StepColumns(args, step) / kActivationGroup;
    const std::byte* rows[2];
    FindBlockRows(args, stage.weights, first_output, Lane() / 4, step, rows);
    StoreTerms<Block>(stage, rows, num_groups, shared);
    __syncthreads();  // the terms are there
    for (int group = 0; group < num_groups; ++group) {
#pragma unroll
      for (int half = 0; half < IntFragment<Block>::kHalves; ++half) {
        sum = fmaf(stage.scales[group][row], shared->terms[group][half][row][output], sum);
      }
    }
  }
  StoreIntSum(args, first_output + output, tile.first_row + row, sum);
}

template <typename Shape>
LaunchShape IntLaunchShape(const LinearBlocksArgs& args, size_t shared_bytes) {
  return {TileGrid(static_cast<unsigned>((args.outputs + Shape::kOutputs - 1) / Shape::kOutputs),
                   NumRowTiles(args.experts, args.activations.rows, Shape::kRows)),
          dim3(kIntThreads), shared_bytes};
}

template <typename Block>
cudaError_t LaunchIntBlock(const LinearBlocksArgs& args, LaunchStream stream) {
  if (args.activations.rows <= FewRows::kRows * args.experts.count) {
    return Launch(linear_int_few_kernel<Block>,
                  IntLaunchShape<FewRows>(args, sizeof(FewRowsShared<Block>)), stream, args);
  }
  return Launch(linear_int_kernel<Block>,
                IntLaunchShape<ManyRows>(args, ManyRows::kStages * sizeof(ManyRowsStage<Block>)),
                stream, args);
}

}  // namespace llm
