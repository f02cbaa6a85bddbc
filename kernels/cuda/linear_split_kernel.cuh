// f32 activations times weights in blocks, on tensor cores: an f32 is the sum of three bf16,
// exactly but for the last bit of some, and products of bf16 are exact in f32.
//
// A group's products are added up from zero, the smallest parts first, then scaled and added to the
// one accumulator of an output: in one order whatever the batch. Tensor cores cut where they add;
// groups of 32 columns keep what that loses as small as what a chain of fmaf rounds.
// A block has 64 outputs of 16 rows; weights come in two stages of 256 columns, activations are
// asked for a stage ahead and split by the threads that store them.
#pragma once

#include "kernels/cuda/block_rows.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_blocks.h"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/split_blocks.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {

constexpr int kSplitWarps = 4;
constexpr int kSplitThreads = kSplitWarps * kWarp;
constexpr int kSplitBlocks = 2;  // a multiprocessor: 94 KiB at most
constexpr int kSplitOutputs = 16 * kSplitWarps;
constexpr int kSplitRows = 16;
constexpr int kSplitParts = 3;
// Rows of 544 bytes: four of them, as half a warp reads 8 bytes a lane, lie in all the 32 banks.
constexpr int kSplitStride = kStageColumns + 16;
constexpr int kSplitLoads = kSplitRows * kStageColumns / 4 / kSplitThreads;  // float4 of a thread

using SplitParts = uint16_t[kSplitParts][kSplitRows][kSplitStride];

template <typename Block>
struct SplitShared {
  BlockRows<Block, kSplitOutputs> weights[2];
  SplitParts parts;
};

// What a thread stores of the step's activations; zero beyond the last row or column.
struct SplitValues {
  float4 loads[kSplitLoads];
};

__device__ __forceinline__ SplitValues LoadSplitValues(const Activations& a, int64_t first_row,
                                                       int64_t step) {
  SplitValues values;
#pragma unroll
  for (int i = 0; i < kSplitLoads; ++i) {
    const int at = (i * kSplitThreads + static_cast<int>(threadIdx.x)) * 4;
    const int64_t row = first_row + at / kStageColumns;
    const int64_t col = step * kStageColumns + at % kStageColumns;
    values.loads[i] = {0, 0, 0, 0};
    if (row < a.rows && col < a.cols) {
      values.loads[i] = *reinterpret_cast<const float4*>(a.values + row * a.cols + col);
    }
  }
  return values;
}

__device__ __forceinline__ void StoreSplitValues(const SplitValues& values, SplitParts* parts) {
#pragma unroll
  for (int i = 0; i < kSplitLoads; ++i) {
    const int at = (i * kSplitThreads + static_cast<int>(threadIdx.x)) * 4;
    float left[4] = {values.loads[i].x, values.loads[i].y, values.loads[i].z, values.loads[i].w};
#pragma unroll
    for (int part = 0; part < kSplitParts; ++part) {
      uint16_t bits[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        bits[j] = ToBF16(left[j]);
        left[j] -= FromBF16(bits[j]);
      }
      uint2* to = reinterpret_cast<uint2*>(&(*parts)[part][at / kStageColumns][at % kStageColumns]);
      *to = {bits[0] | static_cast<uint32_t>(bits[1]) << 16,
             bits[2] | static_cast<uint32_t>(bits[3]) << 16};
    }
  }
}

// A lane's part of a group of 16 outputs: of outputs lane / 4 and lane / 4 + 8.
template <typename Block>
struct SplitFragment {
  using Format = SplitBlock<Block>;
  static constexpr int kHalves = kActivationGroup / Format::kGroup;
  uint2 quads[Format::kParts][2][2];  // [part][16 columns][output]
  float scale[kHalves][2];
  float min[kHalves][2];
};

template <typename Block>
__device__ __forceinline__ SplitFragment<Block> LoadSplitFragment(const std::byte* const (&rows)[2],
                                                                  int group) {
  using Format = SplitBlock<Block>;
  constexpr int kRuns = Block::kBlockSize / kActivationGroup;
  SplitFragment<Block> fragment;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Block& block = reinterpret_cast<const Block*>(rows[i])[group / kRuns];
    const int run = group % kRuns;
#pragma unroll
    for (int part = 0; part < Format::kParts; ++part) {
      fragment.quads[part][0][i] = Format::Quad(block, run, Lane() % 4, part);
      fragment.quads[part][1][i] = Format::Quad(block, run, Lane() % 4 + 4, part);
    }
#pragma unroll
    for (int half = 0; half < SplitFragment<Block>::kHalves; ++half) {
      fragment.scale[half][i] = Format::Scale(block, run, half);
      fragment.min[half][i] = Format::Min(block, run, half);
    }
  }
  return fragment;
}

// Adds 16 columns' products, which lane t's quads have between them: columns 4 t to 4 t + 3 stand
// where mma has 2 t, 2 t + 1, 2 t + 8 and 2 t + 9, on both sides.
__device__ __forceinline__ void MultiplySplit(const uint2& low, const uint2& high,
                                              const SplitParts& parts, int row, int col,
                                              float (&sums)[4]) {
  const uint32_t a[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
  for (int part = kSplitParts - 1; part >= 0; --part) {
    const uint2 quad =
        *reinterpret_cast<const uint2*>(&parts[part][row + Lane() / 4][col + Lane() % 4 * 4]);
    const uint32_t b[2] = {quad.x, quad.y};
    MmaBF16(sums, a, b);
  }
}

// A run of 32 columns of 16 outputs and rows [row, row + 8).
template <typename Block>
__device__ __forceinline__ void AddSplitGroup(const SplitFragment<Block>& w,
                                              const SplitParts& parts, int row, int col,
                                              float (&sums)[4]) {
  using Format = SplitBlock<Block>;
  constexpr uint32_t kOnes = 0x3f803f80;
  float group_sums[4] = {};
  float row_sums[4] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int half_col = col + 16 * half;
#pragma unroll
    for (int part = Format::kParts - 1; part >= 0; --part) {
      MultiplySplit(w.quads[part][half][0], w.quads[part][half][1], parts, row, half_col,
                    group_sums);
    }
    if constexpr (Format::kHasMin) {
      MultiplySplit({kOnes, kOnes}, {kOnes, kOnes}, parts, row, half_col, row_sums);
    }
    if (Format::kGroup == 32 && half == 0) continue;
    const int scaled = Format::kGroup == 32 ? 0 : half;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (Format::kHasMin) sums[i] = fmaf(w.min[scaled][i / 2], row_sums[i], sums[i]);
      sums[i] = fmaf(w.scale[scaled][i / 2], group_sums[i], sums[i]);
      group_sums[i] = 0;
      row_sums[i] = 0;
    }
  }
}

template <typename Block>
__global__ void __launch_bounds__(kSplitThreads, kSplitBlocks)
    linear_split_kernel(const LinearBlocksArgs all) {
  SplitShared<Block>* shared = DynamicShared<SplitShared<Block>>();
  LinearBlocksArgs args = all;
  const RowTile tile = SelectExpert(kSplitRows, &args.activations.rows, &args);
  if (tile.expert < 0) return;
  const Activations& a = args.activations;
  const int64_t first_output = static_cast<int64_t>(blockIdx.x) * kSplitOutputs;
  const int64_t num_steps = (a.cols + kStageColumns - 1) / kStageColumns;
  CopyBlockRows<kSplitThreads>(args, first_output, 0, &shared->weights[0]);
  StoreSplitValues(LoadSplitValues(a, tile.first_row, 0), &shared->parts);
  float sums[kSplitRows / 8][4] = {};
  for (int64_t step = 0; step < num_steps; ++step) {
    CommitCopies();
    WaitCopies<0>();
    __syncthreads();  // the stage is there
    const int64_t next = step + 1;
    SplitValues values;
    if (next < num_steps) {
      CopyBlockRows<kSplitThreads>(args, first_output, next, &shared->weights[next % 2]);
      values = LoadSplitValues(a, tile.first_row, next);
    }
    const std::byte* found[2];
    FindBlockRows(args, shared->weights[step % 2], first_output, WarpIndex() * 16 + Lane() / 4,
                  step, found);
    const int num_groups = StepColumns(args, step) / kActivationGroup;
#pragma unroll 1
    for (int group = 0; group < num_groups; ++group) {
      const SplitFragment<Block> weights = LoadSplitFragment<Block>(found, group);
#pragma unroll
      for (int rows = 0; rows < kSplitRows / 8; ++rows) {
        if (tile.first_row + rows * 8 >= a.rows) break;
        AddSplitGroup(weights, shared->parts, rows * 8, group * kActivationGroup, sums[rows]);
      }
    }
    __syncthreads();  // all warps are through with the activations
    if (next < num_steps) StoreSplitValues(values, &shared->parts);
  }
#pragma unroll
  for (int i = 0; i < kSplitRows / 2; ++i) {
    const int64_t output = first_output + WarpIndex() * 16 + Lane() / 4 + i % 4 / 2 * 8;
    const int64_t row = tile.first_row + i / 4 * 8 + Lane() % 4 * 2 + i % 2;
    if (output >= args.outputs || row >= a.rows) continue;
    const float bias = args.bias != nullptr ? args.bias[output] : 0.0f;
    args.out[row * args.out_stride + output] = sums[i / 4][i % 4] + bias;
  }
}

template <typename Block>
cudaError_t LaunchSplitBlock(const LinearBlocksArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>((args.outputs + kSplitOutputs - 1) / kSplitOutputs),
                  NumRowTiles(args.experts, args.activations.rows, kSplitRows));
  return Launch(linear_split_kernel<Block>, {grid, dim3(kSplitThreads), sizeof(SplitShared<Block>)},
                stream, args);
}

}  // namespace llm
