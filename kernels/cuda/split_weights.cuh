// Stages of weights in blocks, some columns of some outputs as they lie in files, and what a group
// of 32 columns gives when it meets split activations.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/block_rows.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/split_activations.cuh"
#include "kernels/cuda/split_blocks.cuh"

namespace llm {

template <typename BlockType, int kOutputsIn, int kColumnsIn>
struct WeightStage {
  using Block = BlockType;
  static constexpr int kOutputs = kOutputsIn;
  static constexpr int kColumns = kColumnsIn;
  static constexpr int kBytes = kColumns / Block::kBlockSize * static_cast<int>(sizeof(Block));
  // A row's bytes begin anywhere between two multiples of 16. The number is odd, so that eight rows
  // lie in different banks.
  static constexpr int kChunks = (kBytes + 15 + 15) / 16 | 1;

  uint4 chunks[kOutputs][kChunks];
};

// Where an output's blocks begin. Outputs behind the last are computed as the last, and not stored.
template <typename Block>
__device__ __forceinline__ const std::byte* BlocksOf(const LinearBlocksArgs& args, int64_t output) {
  const int64_t row = output < args.outputs ? output : args.outputs - 1;
  return args.weight +
         row * (args.activations.cols / Block::kBlockSize) * static_cast<int64_t>(sizeof(Block));
}

// Where a thread's copies come from: the blocks of one output, whose chunks kThreads / kOutputs
// threads share.
struct CopySource {
  const std::byte* begin;
  bool last;  // of all outputs
};
template <typename Stage, int kThreads>
__device__ __forceinline__ CopySource FindCopies(const LinearBlocksArgs& args,
                                                 int64_t first_output) {
  const int64_t output =
      first_output + static_cast<int>(threadIdx.x) / (kThreads / Stage::kOutputs);
  return {BlocksOf<typename Stage::Block>(args, output), output + 1 >= args.outputs};
}

// Starts a thread's copies of stage `step`. Whole chunks, of which the last one may reach into what
// follows the stage's bytes; but of the weight's last bytes only those that there are.
template <int kThreads, typename Stage>
__device__ __forceinline__ void CopyStage(const LinearBlocksArgs& args, const CopySource& source,
                                          int step, Stage* stage) {
  constexpr int kShare = kThreads / Stage::kOutputs;
  const int row = static_cast<int>(threadIdx.x) / kShare;
  const int first = static_cast<int>(threadIdx.x) % kShare;
  const std::byte* from = source.begin + int64_t{step} * Stage::kBytes;
  const int behind = BytesBehind16(from);
  from += first * 16 - behind;
  uint4* to = &stage->chunks[row][first];
  const int64_t cols = args.activations.cols - int64_t{step} * Stage::kColumns;
  const bool ends = cols <= Stage::kColumns;
  if (!ends) {
    const int chunks = (Stage::kBytes + behind + 15) / 16;
#pragma unroll
    for (int i = 0; i < Stage::kChunks; i += kShare) {
      if (first + i < chunks) CopyAsync16(to + i, from + i * 16, 16);
    }
    return;
  }
  constexpr int kBlockBytes = static_cast<int>(sizeof(typename Stage::Block));
  const int bytes = static_cast<int>(cols) / Stage::Block::kBlockSize * kBlockBytes + behind;
#pragma unroll 1
  for (int i = 0; first + i < (bytes + 15) / 16; i += kShare) {
    const int left = bytes - (first + i) * 16;
    CopyAsync16(to + i, from + i * 16, source.last ? min(left, 16) : 16);
  }
}

// The blocks of a row in the stage.
template <typename Stage>
__device__ __forceinline__ const std::byte* BlocksIn(const Stage& stage, int row,
                                                     const std::byte* begin, int step) {
  return reinterpret_cast<const std::byte*>(stage.chunks[row]) +
         BytesBehind16(begin + int64_t{step} * Stage::kBytes);
}

// A lane's part of a group of 16 outputs: of outputs lane / 4 and lane / 4 + 8.
template <typename Block>
struct SplitFragment {
  using Format = SplitBlock<Block>;
  static constexpr int kHalves = kActivationGroup / Format::kGroup;
  uint32_t quads[2][4];  // [16 columns]: as mma has them
  float scale[kHalves][2];
  float min[kHalves][2];
};

// `rows` are the blocks of the lane's two outputs.
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
    for (int half = 0; half < 2; ++half) {
      const uint2 quad = Format::Quad(block, run, Lane() % 4 + 4 * half);
      fragment.quads[half][i] = quad.x;
      fragment.quads[half][2 + i] = quad.y;
    }
#pragma unroll
    for (int half = 0; half < SplitFragment<Block>::kHalves; ++half) {
      fragment.scale[half][i] = Format::Scale(block, run, half);
      fragment.min[half][i] = Format::Min(block, run, half);
    }
  }
  return fragment;
}

// The parts of 8 rows from `row` on, 32 columns from `col` on: four registers each.
template <typename Rows>
__device__ __forceinline__ void LoadParts(const Rows& rows, int row, int col,
                                          uint32_t (&b)[Rows::kParts][4]) {
#pragma unroll
  for (int part = 0; part < Rows::kParts; ++part) {
    LoadMatrix4(b[part], &rows.parts[part][row + Lane() % 8][col + Lane() / 8 * 8]);
  }
}

template <bool kF16>
__device__ __forceinline__ void MultiplySplit(const uint32_t (&a)[4], uint32_t low, uint32_t high,
                                              float (&sums)[4]) {
  const uint32_t b[2] = {low, high};
  if constexpr (kF16) {
    MmaF16(sums, a, b);
  } else {
    MmaBF16(sums, a, b);
  }
}

// What a group gives to a lane's four sums, in one or two terms; downs are still to be multiplied
// by. The smallest parts are added first, from zero.
template <typename Block>
__device__ __forceinline__ void GroupTerms(
    const SplitFragment<Block>& w, const uint32_t (&b)[kSplitParts<SplitBlock<Block>::kF16>][4],
    float (&terms)[SplitFragment<Block>::kHalves][4]) {
  using Format = SplitBlock<Block>;
  constexpr int kHalves = SplitFragment<Block>::kHalves;
  constexpr uint32_t kOne = Format::kF16 ? 0x3c003c00u : 0x3f803f80u;
  const uint32_t ones[4] = {kOne, kOne, kOne, kOne};
#pragma unroll
  for (int term = 0; term < kHalves; ++term) {
    float sums[4] = {};
    float row_sums[4] = {};
#pragma unroll
    for (int half = term; half < (kHalves == 2 ? term + 1 : 2); ++half) {
#pragma unroll
      for (int part = kSplitParts<Format::kF16> - 1; part >= 0; --part) {
        const uint32_t low = b[part][2 * half];
        const uint32_t high = b[part][2 * half + 1];
        MultiplySplit<Format::kF16>(w.quads[half], low, high, sums);
        if constexpr (Format::kHasMin) MultiplySplit<Format::kF16>(ones, low, high, row_sums);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      terms[term][i] = w.scale[term][i / 2] * sums[i];
      if constexpr (Format::kHasMin) {
        terms[term][i] = fmaf(w.min[term][i / 2], row_sums[i], terms[term][i]);
      }
    }
  }
}

// sum + down * term, where there are downs.
template <bool kF16>
__device__ __forceinline__ float AddTerm(float down, float term, float sum) {
  return kF16 ? fmaf(down, term, sum) : sum + term;
}

}  // namespace llm
