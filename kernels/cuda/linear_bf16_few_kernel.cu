// out = bf16(activations) x weight^T for up to 32 rows, where the bytes of weights that are on
// their way count: all of a block's stages but the one that is being multiplied.
//
// A warp has 16 outputs and goes through the columns in the order of linear_bf16_kernel.cu, with
// the same bits. Its chain of mma takes 512 bytes in some 33 cycles, as much as a multiprocessor's
// share of the memory's rate, so that one or two warps of a small matrix suffice. Activations
// come as they are and are rounded when a fragment is made.
#include <algorithm>

#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_store.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kColumns = 128;  // of a stage
// Eight rows of bf16, as ldmatrix reads them, and four of f32, as half a warp reads pairs of them,
// lie in all the 32 banks.
constexpr int kStride = kColumns + 8;
constexpr int kRowChunks = kColumns * 2 / 16;     // copies of a row of weights
constexpr int kCopies = 16 * kRowChunks / kWarp;  // of weights, by each thread
constexpr int kCopyRows = kWarp / kRowChunks;     // that a warp copies at once
constexpr int kMostStages = 6;
// Of a block: two a multiprocessor from sm_90 on, one of the others and of sm_120.
constexpr int kMostBytes = 88 * 1024;

template <int kWarps, int kRowTiles>
struct Stage {
  uint16_t weights[16 * kWarps][kStride];
  float activations[8 * kRowTiles][kStride];
};

template <int kWarps, int kRowTiles>
constexpr int kStages = std::min(kMostStages,
                                 kMostBytes / static_cast<int>(sizeof(Stage<kWarps, kRowTiles>)));

// Where a thread's copies come from in the first stage: the same eight columns of some outputs,
// four columns of every kWarps-th row. Outputs behind the last are computed as the last, and not
// stored.
struct Sources {
  const uint16_t* weight;
  int64_t offsets[kCopies];
  const float* activations;
  int num_rows;
};

template <int kWarps>
__device__ __forceinline__ Sources FindSources(const LinearArgs& args, int64_t first_output,
                                               int64_t first_row, int num_rows) {
  const int thread = static_cast<int>(threadIdx.x);
  Sources from;
  from.weight = reinterpret_cast<const uint16_t*>(args.weight) + first_output * args.cols +
                thread % kRowChunks * 8;
  const int64_t last = args.outputs - 1 - first_output;
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const int64_t row = thread / kRowChunks + i * kWarps * kCopyRows;
    from.offsets[i] = (row < last ? row : last) * args.cols;
  }
  from.activations = args.activations + (first_row + WarpIndex()) * args.cols + Lane() * 4;
  from.num_rows = num_rows;
  return from;
}

// What lies beyond the last column is zero.
template <int kWarps, int kRowTiles>
__device__ __forceinline__ void LoadStage(const LinearArgs& args, const Sources& from,
                                          int64_t first_col, Stage<kWarps, kRowTiles>* stage) {
  const int thread = static_cast<int>(threadIdx.x);
  const int chunk = thread % kRowChunks * 8;
  const int bytes = first_col + chunk < args.cols ? 16 : 0;
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    CopyAsync16(&stage->weights[thread / kRowChunks + i * kWarps * kCopyRows][chunk],
                from.weight + from.offsets[i] + first_col, bytes);
  }
  const int value_bytes = first_col + Lane() * 4 < args.cols ? 16 : 0;
#pragma unroll
  for (int i = 0; i < 8 * kRowTiles / kWarps; ++i) {
    const int row = WarpIndex() + i * kWarps;
    if (row >= from.num_rows) break;
    CopyAsync16(&stage->activations[row][Lane() * 4],
                from.activations + i * kWarps * args.cols + first_col, value_bytes);
  }
}

// The columns of `k` of a lane's row, in the order of mma; zero where there is no such row.
__device__ __forceinline__ void LoadRow(const float* values, bool exists, uint32_t (&b)[2]) {
  b[0] = 0;
  b[1] = 0;
  if (!exists) return;
  const float2 low = *reinterpret_cast<const float2*>(values);
  const float2 high = *reinterpret_cast<const float2*>(values + 8);
  b[0] = PackBF16(low.x, low.y);
  b[1] = PackBF16(high.x, high.y);
}

template <int kWarps, int kRowTiles>
__device__ __forceinline__ void MultiplyStage(const Stage<kWarps, kRowTiles>& stage, int num_rows,
                                              float (&sums)[kRowTiles][4]) {
  const int lane = Lane();
#pragma unroll
  for (int k = 0; k < kColumns; k += 16) {
    uint32_t a[4];
    LoadMatrix4(a, &stage.weights[WarpIndex() * 16 + lane % 16][k + lane / 16 * 8]);
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      const int row = tile * 8 + lane / 4;
      uint32_t b[2];
      LoadRow(&stage.activations[row][k + lane % 4 * 2], row < num_rows, b);
      MmaBF16(sums[tile], a, b);
    }
  }
}

template <int kWarps, int kRowTiles>
__global__ void __launch_bounds__(kWarps* kWarp) linear_bf16_few_kernel(const LinearArgs all) {
  constexpr int kInFlight = kStages<kWarps, kRowTiles> - 1;
  using StageType = Stage<kWarps, kRowTiles>;
  StageType* stages = DynamicShared<StageType>();  // [kStages]
  LinearArgs args = all;
  const int64_t first_output = SelectTarget(all, 16 * kWarps, blockIdx.x, &args);
  const RowTile tile = SelectExpert(8 * kRowTiles, &args.rows, &args);
  if (tile.expert < 0) return;
  const int64_t rows_left = args.rows - tile.first_row;
  const int num_rows = static_cast<int>(rows_left < 8 * kRowTiles ? rows_left : 8 * kRowTiles);
  const Sources from = FindSources<kWarps>(args, first_output, tile.first_row, num_rows);
  const int num_steps = static_cast<int>((args.cols + kColumns - 1) / kColumns);
#pragma unroll
  for (int step = 0; step < kInFlight; ++step) {
    if (step < num_steps) LoadStage(args, from, int64_t{step} * kColumns, &stages[step]);
    CommitCopies();
  }
  float sums[kRowTiles][4] = {};
  int multiplied = 0;
  int loaded = kInFlight;
  for (int step = 0; step < num_steps; ++step) {
    WaitCopies<kInFlight - 1>();
    // The stage has come in whole, and all warps are through with the one before it.
    __syncthreads();
    const int next = step + kInFlight;
    if (next < num_steps) LoadStage(args, from, int64_t{next} * kColumns, &stages[loaded]);
    CommitCopies();  // also when empty: groups are counted
    MultiplyStage(stages[multiplied], num_rows, sums);
    multiplied = multiplied == kInFlight ? 0 : multiplied + 1;
    loaded = loaded == kInFlight ? 0 : loaded + 1;
  }
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    StoreSums(args, first_output + WarpIndex() * 16, tile.first_row + i * 8, args.rows, sums[i]);
  }
}

template <int kWarps, int kRowTiles>
cudaError_t LaunchTile(const LinearArgs& args, LaunchStream stream) {
  return Launch(
      linear_bf16_few_kernel<kWarps, kRowTiles>,
      {TileGrid(NumOutputTiles(args, 16 * kWarps),
                NumRowTiles(args.experts, args.rows, 8 * kRowTiles)),
       dim3(kWarps * kWarp), kStages<kWarps, kRowTiles> * sizeof(Stage<kWarps, kRowTiles>)},
      stream, args);
}

// Warps that share activations, as many as leave a block to each multiprocessor.
template <int kRowTiles>
cudaError_t LaunchRows(const LinearArgs& args, LaunchStream stream) {
  int count = 0;
  if (const cudaError_t error = CountMultiprocessors(&count); error != cudaSuccess) return error;
  const int64_t warps =
      int64_t{NumOutputTiles(args, 16)} * NumRowTiles(args.experts, args.rows, 8 * kRowTiles);
  if (warps >= 4 * count) return LaunchTile<4, kRowTiles>(args, stream);
  if (warps >= 2 * count) return LaunchTile<2, kRowTiles>(args, stream);
  return LaunchTile<1, kRowTiles>(args, stream);
}

}  // namespace

cudaError_t LaunchLinearBF16Few(const LinearArgs& args, LaunchStream stream) {
  if (args.rows <= 8 * args.experts.count) return LaunchRows<1>(args, stream);
  return args.rows <= 16 * args.experts.count ? LaunchRows<2>(args, stream)
                                              : LaunchRows<4>(args, stream);
}

}  // namespace llm
