// A stage of weights in blocks: 256 columns of some outputs in shared memory, as they lie in files.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/ptx.cuh"

namespace llm {

constexpr int kStageColumns = 256;  // the largest block
constexpr int kStageGroups = kStageColumns / kActivationGroup;

template <typename BlockType, int kOutputsIn>
struct BlockRows {
  using Block = BlockType;
  static constexpr int kOutputs = kOutputsIn;
  static constexpr int kBytes = kStageColumns / Block::kBlockSize * static_cast<int>(sizeof(Block));
  // A row's bytes begin anywhere between two multiples of 16. The number is odd, so that eight rows
  // lie in different banks.
  static constexpr int kChunks = (kBytes + 15 + 15) / 16 | 1;

  uint4 chunks[kOutputs][kChunks];
};

// Columns that the step has, out of kStageColumns.
__device__ __forceinline__ int StepColumns(const LinearBlocksArgs& args, int64_t step) {
  const int64_t left = args.activations.cols - step * kStageColumns;
  return static_cast<int>(left < kStageColumns ? left : kStageColumns);
}

template <typename Block>
__device__ __forceinline__ const std::byte* BlocksOf(const LinearBlocksArgs& args, int64_t output,
                                                     int64_t step) {
  // Outputs behind the last are computed as the last, and not stored.
  const int64_t row = output < args.outputs ? output : args.outputs - 1;
  const int64_t block = (row * args.activations.cols + step * kStageColumns) / Block::kBlockSize;
  return args.weight + block * static_cast<int64_t>(sizeof(Block));
}

__device__ __forceinline__ int BytesBehind16(const std::byte* p) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(p) % 16);
}

// Starts the copies; no byte behind the row's is read, so that none is outside of the weight.
template <int kThreads, typename Rows>
__device__ __forceinline__ void CopyBlockRows(const LinearBlocksArgs& args, int64_t first_output,
                                              int64_t step, Rows* rows) {
  using Block = typename Rows::Block;
  const int bytes = StepColumns(args, step) / Block::kBlockSize * static_cast<int>(sizeof(Block));
  for (int i = static_cast<int>(threadIdx.x); i < Rows::kOutputs * Rows::kChunks; i += kThreads) {
    const std::byte* from = BlocksOf<Block>(args, first_output + i / Rows::kChunks, step);
    const int offset = i % Rows::kChunks * 16 - BytesBehind16(from);
    const int left = bytes - offset;
    const std::byte* chunk = left > 0 ? from + offset : from - BytesBehind16(from);
    CopyAsync16(&rows->chunks[i / Rows::kChunks][i % Rows::kChunks], chunk, min(max(left, 0), 16));
  }
}

// Where outputs `row` and row + 8 of the stage begin.
template <typename Rows>
__device__ __forceinline__ void FindBlockRows(const LinearBlocksArgs& args, const Rows& rows,
                                              int64_t first_output, int row, int64_t step,
                                              const std::byte* (&found)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int at = row + 8 * i;
    const std::byte* from = BlocksOf<typename Rows::Block>(args, first_output + at, step);
    found[i] = reinterpret_cast<const std::byte*>(rows.chunks[at]) + BytesBehind16(from);
  }
}

}  // namespace llm
