// Weights in blocks, decoded as the reference decodes them: linear layers in f32, embedding rows.
//
// A block of threads has 64 outputs of 16 rows, as linear_f32_kernel.cu, in steps of 256 columns:
// the largest block, so that each is decoded once. Not fast: a path to be right by.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp_reduce.cuh"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/q1_0.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "kernels/quant/tq1_0.h"
#include "kernels/quant/tq2_0.h"

namespace llm {
namespace {

constexpr int kThreads = 128;
constexpr int kBlocks = 2;  // a multiprocessor: as many as 80 KiB of shared memory let in
constexpr int kOutputs = 64;
constexpr int kRows = 16;
constexpr int kColumns = 256;  // of a step
constexpr int kThreadRows = kRows * kOutputs / kThreads;

struct Tiles {
  float weights[kOutputs][kColumns + 1];  // + 1: the lanes of a warp read one column of 32 rows
  float activations[kRows][kColumns];     // values, or quants
  float scales[kRows][kColumns / kActivationGroup];  // of quants; 1 for values
};

__device__ __forceinline__ void LoadActivation(const Activations& a, int64_t first_row,
                                               int64_t first_col, int i, Tiles* tiles) {
  const int64_t row = first_row + i / kColumns;
  const int64_t col = first_col + i % kColumns;
  const bool inside = row < a.rows && col < a.cols;
  const int64_t at = row * a.cols + col;
  float x = 0;
  if (inside) x = a.quants == nullptr ? a.values[at] : static_cast<float>(a.quants[at]);
  tiles->activations[i / kColumns][i % kColumns] = x;
  if (i % kActivationGroup != 0) return;
  tiles->scales[i / kColumns][i % kColumns / kActivationGroup] =
      inside && a.quants != nullptr ? a.scales[at / kActivationGroup] : 1.0f;
}

// A thread decodes whole blocks; what lies beyond the last output or column is zero.
template <typename Block>
__device__ __forceinline__ void LoadTiles(const LinearBlocksArgs& args, int64_t first_output,
                                          int64_t first_row, int64_t first_col, Tiles* tiles) {
  constexpr int kRowBlocks = kColumns / Block::kBlockSize;
  const Activations& a = args.activations;
  const int64_t row_blocks = a.cols / Block::kBlockSize;
  const Block* weight = reinterpret_cast<const Block*>(args.weight);
  for (int i = static_cast<int>(threadIdx.x); i < kOutputs * kRowBlocks; i += kThreads) {
    const int64_t output = first_output + i / kRowBlocks;
    const int64_t block = first_col / Block::kBlockSize + i % kRowBlocks;
    float* to = &tiles->weights[i / kRowBlocks][i % kRowBlocks * Block::kBlockSize];
    if (output < args.outputs && block < row_blocks) {
      weight[output * row_blocks + block].Decode(to);
    } else {
      for (int k = 0; k < Block::kBlockSize; ++k) to[k] = 0;
    }
  }
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += kThreads) {
    LoadActivation(a, first_row, first_col, i, tiles);
  }
}

// A group's columns are added up before its scale, then groups in ascending order
// (kernels/linear.h).
__device__ __forceinline__ void AddColumns(const Tiles& tiles, int output, int row,
                                           float (&sums)[kThreadRows]) {
  for (int group = 0; group < kColumns / kActivationGroup; ++group) {
    float partial[kThreadRows] = {};
    for (int k = group * kActivationGroup; k < (group + 1) * kActivationGroup; ++k) {
      const float w = tiles.weights[output][k];
#pragma unroll
      for (int r = 0; r < kThreadRows; ++r) {
        partial[r] = fmaf(tiles.activations[row + r][k], w, partial[r]);
      }
    }
#pragma unroll
    for (int r = 0; r < kThreadRows; ++r) {
      sums[r] = fmaf(tiles.scales[row + r][group], partial[r], sums[r]);
    }
  }
}

template <typename Block>
__global__ void __launch_bounds__(kThreads, kBlocks)
    linear_blocks_kernel(const LinearBlocksArgs args) {
  Tiles* tiles = DynamicShared<Tiles>();
  const int64_t first_output = static_cast<int64_t>(blockIdx.x) * kOutputs;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kRows;
  const int output = static_cast<int>(threadIdx.x) % kOutputs;
  const int row = static_cast<int>(threadIdx.x) / kOutputs * kThreadRows;
  float sums[kThreadRows] = {};
  for (int64_t col = 0; col < args.activations.cols; col += kColumns) {
    __syncthreads();  // the tiles before have been read
    LoadTiles<Block>(args, first_output, first_row, col, tiles);
    __syncthreads();
    if (first_row + row >= args.activations.rows) continue;
    AddColumns(*tiles, output, row, sums);
  }
  const int64_t column = first_output + output;
  if (column >= args.outputs) return;
  const float bias = args.bias != nullptr ? args.bias[column] : 0.0f;
#pragma unroll
  for (int r = 0; r < kThreadRows; ++r) {
    if (first_row + row + r >= args.activations.rows) continue;
    args.out[(first_row + row + r) * args.out_stride + column] = sums[r] + bias;
  }
}

// A thread a block.
template <typename Block>
__global__ void __launch_bounds__(kThreads) embed_blocks_kernel(const EmbedArgs args) {
  const int64_t row_blocks = args.cols / Block::kBlockSize;
  const int64_t token = static_cast<int64_t>(blockIdx.x);
  const int64_t block =
      static_cast<int64_t>(blockIdx.y) * kThreads + static_cast<int64_t>(threadIdx.x);
  if (block >= row_blocks) return;
  float* out = args.out + token * args.cols + block * Block::kBlockSize;
  reinterpret_cast<const Block*>(args.table)[args.token_ids[token] * row_blocks + block].Decode(
      out);
  for (int i = 0; i < Block::kBlockSize; ++i) out[i] *= args.scale;
}

// Calls visit(Block()) with the format's block.
template <typename Visit>
cudaError_t VisitFormat(BlockFormat format, const Visit& visit) {
  switch (format) {
#define LLM_BLOCK_FORMAT(name, header) \
  case BlockFormat::k##name:           \
    return visit(name{});
#include "kernels/cuda/block_formats.def"
#undef LLM_BLOCK_FORMAT
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t LaunchLinearBlocks(BlockFormat format, const LinearBlocksArgs& args,
                               cudaStream_t stream) {
  const LaunchShape shape = {
      dim3(static_cast<unsigned>((args.outputs + kOutputs - 1) / kOutputs),
           static_cast<unsigned>((args.activations.rows + kRows - 1) / kRows)),
      dim3(kThreads), sizeof(Tiles)};
  return VisitFormat(format, [&](auto block) {
    return Launch(linear_blocks_kernel<decltype(block)>, shape, stream, args);
  });
}

cudaError_t LaunchEmbedBlocks(BlockFormat format, const EmbedArgs& args, cudaStream_t stream) {
  return VisitFormat(format, [&](auto block) {
    const int64_t row_blocks = args.cols / decltype(block)::kBlockSize;
    const LaunchShape shape = {dim3(static_cast<unsigned>(args.num_tokens),
                                    static_cast<unsigned>((row_blocks + kThreads - 1) / kThreads)),
                               dim3(kThreads)};
    return Launch(embed_blocks_kernel<decltype(block)>, shape, stream, args);
  });
}

}  // namespace llm
