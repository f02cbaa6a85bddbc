// out = bf16(activations) x weight^T for many rows on tensor cores: three stages of columns are on
// their way while one is multiplied.
//
// Weights are the left operand, as in linear_bf16_few_kernel.cu; a sum runs over the columns 16 at
// a time in one accumulator, so that its bits do not depend on the tile that a call chooses. A warp
// of the largest tile has 64 outputs and 64 rows: 32 mma for 8 ldmatrix, since with half of that
// shared memory would be as busy as the tensor cores. Activations come rounded, as weights do, or
// are rounded on their way to shared memory, and asked for a stage before.
#include <type_traits>

#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_store.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/row_tile.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kColumns = 32;  // of a stage
constexpr int kStages = 4;
constexpr int kChunk = 8;  // elements of 16 bytes
constexpr int kRowChunks = kColumns / kChunk;

// Warps of a block and, of each warp, mma tiles: 16 outputs, 8 rows.
template <int kOutputWarpsIn, int kRowWarpsIn, int kOutputTilesIn, int kRowTilesIn, int kBlocksIn>
struct TileShape {
  static constexpr int kOutputWarps = kOutputWarpsIn;
  static constexpr int kThreads = kOutputWarpsIn * kRowWarpsIn * kWarp;
  static constexpr int kOutputTiles = kOutputTilesIn;
  static constexpr int kRowTiles = kRowTilesIn;
  static constexpr int kBlocks = kBlocksIn;  // a multiprocessor
  static constexpr int kWarpOutputs = 16 * kOutputTiles;
  static constexpr int kWarpRows = 8 * kRowTiles;
  static constexpr int kOutputs = kWarpOutputs * kOutputWarpsIn;
  static constexpr int kRows = kWarpRows * kRowWarpsIn;
  static constexpr int kWeightCopies = kOutputs * kRowChunks / kThreads;  // of a thread
  static constexpr int kLoads = kRows * kRowChunks / kThreads;            // of 8 values
};
using SmallTile = TileShape<2, 2, 2, 4, 4>;   // 64 outputs, 64 rows
using MediumTile = TileShape<2, 2, 4, 4, 3>;  // 128, 64
using LargeTile = TileShape<4, 2, 4, 8, 1>;   // 256, 128
template <int kShape>
using ShapeOf = std::conditional_t<kShape == 0, SmallTile,
                                   std::conditional_t<kShape == 1, MediumTile, LargeTile>>;

// Two rows of 64 bytes have all the banks. Chunks change places by pairs of rows, so that eight
// rows of one chunk, as ldmatrix reads them, have them too.
__device__ __forceinline__ int ChunkAt(int row, int chunk) {
  return row * kColumns + (chunk ^ (row / 2 % kRowChunks)) * kChunk;
}

template <typename Shape>
struct Stage {
  uint16_t weights[Shape::kOutputs * kColumns];
  uint16_t activations[Shape::kRows * kColumns];
};

// A thread's place in every stage: one chunk of columns of some outputs and some rows. Those behind
// the last are computed as the last, and not stored.
template <typename Shape, bool kRounded>
struct Sources {
  using Value = std::conditional_t<kRounded, uint16_t, float>;
  const uint16_t* weights[Shape::kWeightCopies];
  const Value* activations[Shape::kLoads];
};

template <typename Shape, bool kRounded>
__device__ __forceinline__ Sources<Shape, kRounded> FindSources(const LinearArgs& args,
                                                                int64_t first_output,
                                                                int64_t first_row) {
  constexpr int kStep = Shape::kThreads / kRowChunks;
  const int row = static_cast<int>(threadIdx.x) / kRowChunks;
  const int col = static_cast<int>(threadIdx.x) % kRowChunks * kChunk;
  Sources<Shape, kRounded> from;
#pragma unroll
  for (int i = 0; i < Shape::kWeightCopies; ++i) {
    const int64_t output = first_output + row + i * kStep;
    from.weights[i] = reinterpret_cast<const uint16_t*>(args.weight) +
                      (output < args.outputs ? output : args.outputs - 1) * args.cols + col;
  }
#pragma unroll
  for (int i = 0; i < Shape::kLoads; ++i) {
    const int64_t at = first_row + row + i * kStep;
    const auto* values = reinterpret_cast<const typename Sources<Shape, kRounded>::Value*>(
        kRounded ? static_cast<const void*>(args.rounded) : args.activations);
    from.activations[i] = values + (at < args.rows ? at : args.rows - 1) * args.cols + col;
  }
  return from;
}

// What lies beyond the last column is zero.
template <typename Shape, bool kRounded>
__device__ __forceinline__ void CopyChunks(const LinearArgs& args,
                                           const Sources<Shape, kRounded>& from, int step,
                                           Stage<Shape>* stage) {
  constexpr int kStep = Shape::kThreads / kRowChunks;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first_col = int64_t{step} * kColumns;
  const int bytes = first_col + thread % kRowChunks * kChunk < args.cols ? 16 : 0;
#pragma unroll
  for (int i = 0; i < Shape::kWeightCopies; ++i) {
    const int at = ChunkAt(thread / kRowChunks, thread % kRowChunks) + i * kStep * kColumns;
    CopyAsync16(&stage->weights[at], from.weights[i] + first_col, bytes);
  }
  if constexpr (kRounded) {
#pragma unroll
    for (int i = 0; i < Shape::kLoads; ++i) {
      const int at = ChunkAt(thread / kRowChunks, thread % kRowChunks) + i * kStep * kColumns;
      CopyAsync16(&stage->activations[at], from.activations[i] + first_col, bytes);
    }
  }
}

template <typename Shape>
struct Values {
  float4 loads[Shape::kLoads][2];
};

template <typename Shape>
__device__ __forceinline__ void LoadValues(const LinearArgs& args,
                                           const Sources<Shape, false>& from, int step,
                                           Values<Shape>* values) {
  const int64_t first_col = int64_t{step} * kColumns;
  const bool inside = first_col + static_cast<int>(threadIdx.x) % kRowChunks * kChunk < args.cols;
#pragma unroll
  for (int i = 0; i < Shape::kLoads; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4* x = reinterpret_cast<const float4*>(from.activations[i] + first_col) + half;
      values->loads[i][half] = inside ? *x : float4{0, 0, 0, 0};
    }
  }
}

template <typename Shape>
__device__ __forceinline__ void StoreValues(const Values<Shape>& values, Stage<Shape>* stage) {
  constexpr int kStep = Shape::kThreads / kRowChunks;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < Shape::kLoads; ++i) {
    const int at = ChunkAt(thread / kRowChunks, thread % kRowChunks) + i * kStep * kColumns;
    const float4& low = values.loads[i][0];
    const float4& high = values.loads[i][1];
    *reinterpret_cast<uint4*>(&stage->activations[at]) = {
        PackBF16(low.x, low.y), PackBF16(low.z, low.w), PackBF16(high.x, high.y),
        PackBF16(high.z, high.w)};
  }
}

template <typename Shape>
using TileSums = float[Shape::kOutputTiles][Shape::kRowTiles][4];

// `output` and `row` are the warp's first ones in the block.
template <typename Shape>
__device__ __forceinline__ void MultiplyStage(const Stage<Shape>& stage, int output, int row,
                                              TileSums<Shape>& sums) {
  const int lane = Lane();
#pragma unroll
  for (int chunk = 0; chunk < kRowChunks; chunk += 2) {  // 16 columns
    uint32_t a[Shape::kOutputTiles][4];
#pragma unroll
    for (int i = 0; i < Shape::kOutputTiles; ++i) {
      LoadMatrix4(
          a[i], &stage.weights[ChunkAt(output + lane % 16, chunk + lane / 16) + i * 16 * kColumns]);
    }
#pragma unroll
    for (int pair = 0; pair < Shape::kRowTiles / 2; ++pair) {
      uint32_t b[4];
      LoadMatrix4(b,
                  &stage.activations[ChunkAt(row + lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2) +
                                     pair * 16 * kColumns]);
      const uint32_t first[2] = {b[0], b[1]};
      const uint32_t second[2] = {b[2], b[3]};
#pragma unroll
      for (int i = 0; i < Shape::kOutputTiles; ++i) {
        MmaBF16(sums[i][2 * pair], a[i], first);
        MmaBF16(sums[i][2 * pair + 1], a[i], second);
      }
    }
  }
}

template <int kShape, bool kRounded>
__global__ void __launch_bounds__(ShapeOf<kShape>::kThreads, ShapeOf<kShape>::kBlocks)
    linear_bf16_kernel(const LinearArgs all) {
  using Shape = ShapeOf<kShape>;
  Stage<Shape>* stages = DynamicShared<Stage<Shape>>();  // [kStages]
  LinearArgs args = all;
  const BlockTile at = FindBlockTile();
  const int64_t first_output = SelectTarget(all, Shape::kOutputs, at.outputs, &args);
  const RowTile tile = SelectExpert(Shape::kRows, at.rows, &args.rows, &args);
  if (tile.expert < 0) return;
  const auto from = FindSources<Shape, kRounded>(args, first_output, tile.first_row);
  const int num_steps = static_cast<int>((args.cols + kColumns - 1) / kColumns);
  [[maybe_unused]] Values<Shape> values;
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < num_steps) {
      CopyChunks(args, from, step, &stages[step]);
      if constexpr (!kRounded) {
        LoadValues(args, from, step, &values);
        if (step < kStages - 2) StoreValues(values, &stages[step]);
      }
    }
    CommitCopies();
  }
  const int output = WarpIndex() % Shape::kOutputWarps * Shape::kWarpOutputs;
  const int row = WarpIndex() / Shape::kOutputWarps * Shape::kWarpRows;
  TileSums<Shape> sums = {};
#pragma unroll 1
  for (int step = 0; step < num_steps; ++step) {
    WaitCopies<kStages - 2>();
    // The stage has come in whole, and all warps are through with the one before it.
    __syncthreads();
    const int next = step + kStages - 1;
    if constexpr (!kRounded) {
      if (next - 1 < num_steps) StoreValues(values, &stages[(next - 1) % kStages]);
    }
    if (next < num_steps) {
      CopyChunks(args, from, next, &stages[next % kStages]);
      if constexpr (!kRounded) LoadValues(args, from, next, &values);
    }
    CommitCopies();  // also when empty: groups are counted
    MultiplyStage<Shape>(stages[step % kStages], output, row, sums);
  }
#pragma unroll
  for (int i = 0; i < Shape::kOutputTiles; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kRowTiles; ++j) {
      StoreSums(args, first_output + output + i * 16, tile.first_row + row + j * 8, args.rows,
                sums[i][j]);
    }
  }
}

template <int kShape>
dim3 GridOf(const LinearArgs& args) {
  using Shape = ShapeOf<kShape>;
  return TileGrid(NumOutputTiles(args, Shape::kOutputs),
                  NumRowTiles(args.experts, args.rows, Shape::kRows));
}

template <int kShape>
cudaError_t LaunchTile(const LinearArgs& args, LaunchStream stream) {
  using Shape = ShapeOf<kShape>;
  return Launch(args.rounded != nullptr ? linear_bf16_kernel<kShape, true>
                                        : linear_bf16_kernel<kShape, false>,
                {GridOf<kShape>(args), dim3(Shape::kThreads), kStages * sizeof(Stage<Shape>)},
                stream, args);
}

// Blocks for most multiprocessors: a larger tile reads less.
template <int kShape>
bool Fills(const LinearArgs& args, int multiprocessors) {
  return NumBlocks(GridOf<kShape>(args)) * 10 >= int64_t{multiprocessors} * 8 &&
         !AreMostlyEmpty(args.experts, args.rows, ShapeOf<kShape>::kRows);
}

}  // namespace

cudaError_t LaunchLinearBF16(const LinearArgs& args, LaunchStream stream) {
  int count = 0;
  if (const cudaError_t error = CountMultiprocessors(&count); error != cudaSuccess) return error;
  // Of few outputs the kernel for few rows has more blocks, and more on its way in each; the
  // weights of its second tile of rows come out of the second-level cache.
  const int few = Fills<0>(args, count) ? 32 : 64;
  if (args.rows <= few * args.experts.count) return LaunchLinearBF16Few(args, stream);
  if (Fills<2>(args, count)) return LaunchTile<2>(args, stream);
  return Fills<1>(args, count) ? LaunchTile<1>(args, stream) : LaunchTile<0>(args, stream);
}

}  // namespace llm
