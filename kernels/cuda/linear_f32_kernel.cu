// out = activations x weight^T in f32, for shapes and formats that tensor cores cannot take
// exactly.
//
// A block has 64 outputs of 16 rows. Each sum runs over the columns one by one, so that it is the
// same whatever the batch; weights are read once for 16 rows. Not fast: a path to be right by.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kThreads = 128;
constexpr int kBlocks = 4;  // a multiprocessor: 128 registers a thread; left to itself ptxas spills
constexpr int kOutputs = 64;
constexpr int kRows = 16;
constexpr int kColumns = 32;                              // of a step
constexpr int kThreadRows = kRows * kOutputs / kThreads;  // that a thread adds up

struct Tiles {
  float weights[kOutputs][kColumns + 1];  // + 1: the lanes of a warp read one column of 32 rows
  float activations[kRows][kColumns];
};

__device__ __forceinline__ float LoadActivation(const LinearArgs& args, int64_t row, int64_t col) {
  if (row >= args.rows || col >= args.cols) return 0.0f;
  const float x = args.activations[row * args.cols + col];
  return args.round_to_bf16 ? FromBF16(ToBF16(x)) : x;
}

__device__ __forceinline__ void LoadTiles(const LinearArgs& args, int64_t first_output,
                                          int64_t first_row, int64_t first_col, Tiles* tiles) {
  const int64_t col = first_col + Lane();
  for (int i = WarpIndex(); i < kOutputs; i += kThreads / kWarp) {
    const int64_t output = first_output + i;
    const bool inside = output < args.outputs && col < args.cols;
    tiles->weights[i][Lane()] =
        inside ? LoadElement(args.dtype, args.weight, output * args.cols + col) : 0.0f;
  }
  for (int i = WarpIndex(); i < kRows; i += kThreads / kWarp) {
    tiles->activations[i][Lane()] = LoadActivation(args, first_row + i, col);
  }
}

__global__ void __launch_bounds__(kThreads, kBlocks) linear_f32_kernel(const LinearArgs all) {
  Tiles* tiles = DynamicShared<Tiles>();
  LinearArgs args = all;
  const RowTile tile = SelectExpert(kRows, &args.rows, &args);
  if (tile.expert < 0) return;
  const int64_t first_output = static_cast<int64_t>(blockIdx.x) * kOutputs;
  const int64_t first_row = tile.first_row;
  const int output = static_cast<int>(threadIdx.x) % kOutputs;
  const int row = static_cast<int>(threadIdx.x) / kOutputs * kThreadRows;
  float sums[kThreadRows] = {};
  for (int64_t col = 0; col < args.cols; col += kColumns) {
    __syncthreads();  // the tiles before have been read
    LoadTiles(args, first_output, first_row, col, tiles);
    __syncthreads();
    if (first_row + row >= args.rows) continue;
    for (int k = 0; k < kColumns; ++k) {
      const float w = tiles->weights[output][k];
#pragma unroll
      for (int r = 0; r < kThreadRows; ++r) {
        sums[r] = fmaf(tiles->activations[row + r][k], w, sums[r]);
      }
    }
  }
  const int64_t column = first_output + output;
  if (column >= args.outputs) return;
  const float bias = args.bias != nullptr ? args.bias[column] : 0.0f;
#pragma unroll
  for (int r = 0; r < kThreadRows; ++r) {
    if (first_row + row + r >= args.rows) continue;
    args.out[(first_row + row + r) * args.out_stride + column] = sums[r] + bias;
  }
}

}  // namespace

cudaError_t LaunchLinearF32(const LinearArgs& args, LaunchStream stream) {
  return Launch(linear_f32_kernel,
                {TileGrid(static_cast<unsigned>((args.outputs + kOutputs - 1) / kOutputs),
                          NumRowTiles(args.experts, args.rows, kRows)),
                 dim3(kThreads), sizeof(Tiles)},
                stream, args);
}

}  // namespace llm
