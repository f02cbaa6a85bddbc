// int8 activations times weights of integers on tensor cores: what both kernels of
// linear_int_kernel.cu share.
//
// Blocks of weights come to shared memory as they lie in files and are unpacked into the fragments
// of an mma, whose lanes want four quants of neighbouring columns: what a word of nibbles or bytes
// holds. A group's sum of products is exact; its scales and the f32 accumulator follow in the order
// of kernels/linear.h, group by group, so that nothing of the tile or the batch shows in a bit.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/block_rows.cuh"
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/int_grids.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {

template <typename Block, int kOutputs, int kRows>
struct IntStage {
  static constexpr int kStride =
      kStageColumns + 16;  // eight rows, as ldmatrix reads them: all banks

  BlockRows<Block, kOutputs> weights;
  int8_t quants[kRows][kStride];
  float scales[kStageGroups][kRows];
  uint32_t sums[kStageGroups][kRows];  // of the first 16 columns in the low half
};

__device__ __forceinline__ int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <int kThreads, typename Block, int kOutputs, int kRows>
__device__ __forceinline__ void LoadIntActivations(const LinearBlocksArgs& args, int64_t first_row,
                                                   int64_t first_col, int columns,
                                                   IntStage<Block, kOutputs, kRows>* stage) {
  constexpr int kChunks = kStageColumns / 16;
  const Activations& a = args.activations;
  const int64_t last = a.rows - 1;  // rows behind it are computed as the last, and not stored
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunks; i += kThreads) {
    const int64_t row = Smaller(first_row + i / kChunks, last);
    const int col = i % kChunks * 16;
    const bool inside = col < columns;
    const int8_t* from = a.quants + row * a.cols + first_col + (inside ? col : 0);
    CopyAsync16(&stage->quants[i / kChunks][col], from, inside ? 16 : 0);
  }
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kStageGroups; i += kThreads) {
    const int group = i / kRows;
    if (group * kActivationGroup >= columns) break;
    const int64_t row = Smaller(first_row + i % kRows, last);
    const int64_t at = (row * a.cols + first_col) / kActivationGroup + group;
    CopyAsync4(&stage->scales[group][i % kRows], a.scales + at);
    CopyAsync4(&stage->sums[group][i % kRows], a.sums + 2 * at);
  }
}

template <int kThreads, typename Block, int kOutputs, int kRows>
__device__ __forceinline__ void LoadIntStage(const LinearBlocksArgs& args, int64_t first_output,
                                             int64_t first_row, int64_t step,
                                             IntStage<Block, kOutputs, kRows>* stage) {
  const int columns = StepColumns(args, step);
  CopyBlockRows<kThreads>(args, first_output, step, &stage->weights);
  LoadIntActivations<kThreads>(args, first_row, step * kStageColumns, columns, stage);
}

// A lane's part of a group of 16 outputs: of outputs lane / 4 and lane / 4 + 8.
template <typename Block>
struct IntFragment {
  static constexpr int kHalves = kActivationGroup / IntBlock<Block>::kGroup;
  uint32_t quants[4];  // as mma's left operand; the first two are the first 16 columns
  float scale[kHalves][2];
  float offset[kHalves][2];
};

// `rows` are the outputs' bytes of the stage.
template <typename Block>
__device__ __forceinline__ IntFragment<Block> LoadIntFragment(const std::byte* const (&rows)[2],
                                                              int group) {
  using Format = IntBlock<Block>;
  constexpr int kRuns = Block::kBlockSize / kActivationGroup;
  IntFragment<Block> fragment;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Block& block = reinterpret_cast<const Block*>(rows[i])[group / kRuns];
    const int run = group % kRuns;
    fragment.quants[i] = Format::Quants(block, run, Lane() % 4);
    fragment.quants[i + 2] = Format::Quants(block, run, Lane() % 4 + 4);
#pragma unroll
    for (int half = 0; half < IntFragment<Block>::kHalves; ++half) {
      fragment.scale[half][i] = Format::Scale(block, run, half);
      if constexpr (Format::kOffset != IntOffset::kNone) {
        fragment.offset[half][i] = Format::Offset(block, run, half);
      }
    }
  }
  return fragment;
}

// What the group, or half of it, adds to 16 outputs of 8 rows before the rows' scales; element i of
// a lane is of output lane / 4 + i / 2 * 8 and row lane % 4 * 2 + i % 2. `activations` is mma's
// right operand, `sums` are of those two rows.
template <typename Block>
__device__ __forceinline__ void MultiplyGroup(const IntFragment<Block>& w, int half,
                                              const uint32_t (&activations)[2], const uint2& sums,
                                              float (&terms)[4]) {
  using Format = IntBlock<Block>;
  int sum[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const uint32_t both = r == 0 ? sums.x : sums.y;
    const int low = static_cast<int16_t>(both & 0xffff);
    const int high = static_cast<int16_t>(both >> 16);
    sum[r] = Format::kGroup == 32 ? low + high : half == 0 ? low : high;
  }
  int dots[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) dots[i] = -Format::kZero * sum[i % 2];
  if constexpr (Format::kGroup == 32) {
    MmaS8(dots, w.quants, activations);
  } else {
    const uint32_t quants[2] = {w.quants[2 * half], w.quants[2 * half + 1]};
    MmaS8(dots, quants, activations[half]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float dot = static_cast<float>(dots[i]);
    const float scale = w.scale[half][i / 2];
    if constexpr (Format::kOffset == IntOffset::kWhole) {
      const float offset = w.offset[half][i / 2];
      terms[i] = scale * fmaf(offset, static_cast<float>(sum[i % 2]), dot);
    } else if constexpr (Format::kOffset == IntOffset::kMin) {
      const float offset = w.offset[half][i / 2];
      terms[i] = fmaf(scale, dot, offset * static_cast<float>(sum[i % 2]));
    } else {
      terms[i] = scale * dot;
    }
  }
}

}  // namespace llm
