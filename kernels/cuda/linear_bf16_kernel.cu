// out = bf16(activations) x weight^T on tensor cores, weights by cp.async in three stages.
//
// Weights are the left operand, so that 8 rows of activations fill a tile and a batch of one wastes
// the least. A warp has 16 outputs of all rows of the block; its sums run over the columns 16 at a
// time in one accumulator, so that their bits do not depend on the tile that a batch chooses.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
// A multiprocessor: 128 registers a thread, or 168 for the larger tile; left to itself ptxas
// spills.
template <int kRows>
constexpr int kBlocks = kRows == 16 ? 4 : 3;
constexpr int kOutputs = 16 * kWarps;
constexpr int kColumns = 32;  // of a stage
constexpr int kStages = 3;    // two on their way while one is multiplied
// Rows of 80 bytes: eight of them, as ldmatrix reads them, lie in all the 32 banks.
constexpr int kStride = kColumns + 8;
constexpr int kChunk = 8;  // elements of 16 bytes
constexpr int kRowChunks = kColumns / kChunk;

template <int kRows>
struct Stage {
  uint16_t weights[kOutputs][kStride];
  uint16_t activations[kRows][kStride];
};

// What lies beyond the last output, row or column is zero.
template <int kRows>
__device__ __forceinline__ void LoadStage(const LinearArgs& args, int64_t first_output,
                                          int64_t first_row, int64_t first_col,
                                          Stage<kRows>* stage) {
  const uint16_t* weight = reinterpret_cast<const uint16_t*>(args.weight);
  for (int i = static_cast<int>(threadIdx.x); i < kOutputs * kRowChunks; i += kThreads) {
    const int64_t output = first_output + i / kRowChunks;
    const int64_t col = first_col + i % kRowChunks * kChunk;
    const bool inside = output < args.outputs && col < args.cols;
    const uint16_t* source = inside ? weight + output * args.cols + col : weight;
    CopyAsync16(&stage->weights[i / kRowChunks][i % kRowChunks * kChunk], source, inside ? 16 : 0);
  }
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kRowChunks; i += kThreads) {
    const int64_t row = first_row + i / kRowChunks;
    const int64_t col = first_col + i % kRowChunks * kChunk;
    uint4 packed = {0, 0, 0, 0};
    if (row < args.rows && col < args.cols) {
      const float4* x = reinterpret_cast<const float4*>(args.activations + row * args.cols + col);
      const float4 low = x[0];
      const float4 high = x[1];
      packed = {PackBF16(low.x, low.y), PackBF16(low.z, low.w), PackBF16(high.x, high.y),
                PackBF16(high.z, high.w)};
    }
    *reinterpret_cast<uint4*>(&stage->activations[i / kRowChunks][i % kRowChunks * kChunk]) =
        packed;
  }
}

// One stage's columns of the warp's 16 outputs.
template <int kRows>
__device__ __forceinline__ void MultiplyStage(const Stage<kRows>& stage,
                                              float (&sums)[kRows / 8][4]) {
  const int lane = Lane();
#pragma unroll
  for (int k = 0; k < kColumns; k += 16) {
    uint32_t a[4];
    LoadMatrix4(a, &stage.weights[WarpIndex() * 16 + lane % 16][k + lane / 16 * 8]);
#pragma unroll
    for (int pair = 0; pair < kRows / 16; ++pair) {  // 16 rows: two tiles of 8
      uint32_t b[4];
      LoadMatrix4(b,
                  &stage.activations[pair * 16 + lane / 16 * 8 + lane % 8][k + lane / 8 % 2 * 8]);
      const uint32_t first[2] = {b[0], b[1]};
      const uint32_t second[2] = {b[2], b[3]};
      MmaBF16(sums[2 * pair], a, first);
      MmaBF16(sums[2 * pair + 1], a, second);
    }
  }
}

template <int kRows>
__device__ __forceinline__ void StoreSums(const LinearArgs& args, int64_t first_output,
                                          int64_t first_row, const float (&sums)[kRows / 8][4]) {
#pragma unroll
  for (int tile = 0; tile < kRows / 8; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t output = first_output + WarpIndex() * 16 + Lane() / 4 + i / 2 * 8;
      const int64_t row = first_row + tile * 8 + Lane() % 4 * 2 + i % 2;
      if (output >= args.outputs || row >= args.rows) continue;
      const float bias = args.bias != nullptr ? args.bias[output] : 0.0f;
      args.out[row * args.out_stride + output] = sums[tile][i] + bias;
    }
  }
}

template <int kRows>
__global__ void __launch_bounds__(kThreads, kBlocks<kRows>)
    linear_bf16_kernel(const LinearArgs all) {
  Stage<kRows>* stages = DynamicShared<Stage<kRows>>();  // [kStages]
  LinearArgs args = all;
  const RowTile tile = SelectExpert(kRows, &args.rows, &args);
  if (tile.expert < 0) return;
  const int64_t first_output = static_cast<int64_t>(blockIdx.x) * kOutputs;
  const int64_t first_row = tile.first_row;
  const int64_t num_steps = (args.cols + kColumns - 1) / kColumns;
  for (int64_t step = 0; step < kStages - 1; ++step) {
    if (step < num_steps) {
      LoadStage(args, first_output, first_row, step * kColumns, &stages[step]);
    }
    CommitCopies();
  }
  float sums[kRows / 8][4] = {};
  for (int64_t step = 0; step < num_steps; ++step) {
    WaitCopies<kStages - 2>();
    // The stage has come in whole, and all warps are through with the one before it.
    __syncthreads();
    const int64_t next = step + kStages - 1;
    if (next < num_steps) {
      LoadStage(args, first_output, first_row, next * kColumns, &stages[next % kStages]);
    }
    CommitCopies();  // also when empty: groups are counted
    MultiplyStage(stages[step % kStages], sums);
  }
  StoreSums<kRows>(args, first_output, first_row, sums);
}

template <int kRows>
cudaError_t LaunchRows(const LinearArgs& args, cudaStream_t stream) {
  return Launch(linear_bf16_kernel<kRows>,
                {dim3(static_cast<unsigned>((args.outputs + kOutputs - 1) / kOutputs),
                      NumRowTiles(args.experts, args.rows, kRows)),
                 dim3(kThreads), kStages * sizeof(Stage<kRows>)},
                stream, args);
}

}  // namespace

cudaError_t LaunchLinearBF16(const LinearArgs& args, cudaStream_t stream) {
  if (args.rows <= 32 * args.experts.count) return LaunchLinearBF16Few(args, stream);
  return LaunchRows<64>(args, stream);
}

}  // namespace llm
