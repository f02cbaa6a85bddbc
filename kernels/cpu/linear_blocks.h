// The loops of a float GEMM: columns are taken in blocks whose activations are gathered side by
// side, tiles in groups that fill the registers, and a tile in pieces that stay in the first-level
// cache while the task's rows pass over them.
//
// A Step says how 16 outputs meet one step: kBytes of a tile and kFloats (1 or 2) of a gathered
// row, multiplied one after the other. LoadStep<i>(p), Broadcast(a), Multiply(a, w, acc).
//
// A Source says what a task multiplies: Step, kStepCols, kUsesPanel, Gather(values, cols, out) of
// one row, and, with kUsesPanel, Decode(task, from, ahead, steps, panel) of one tile's piece.
//
// Include it only from sources that are compiled per ISA.
#pragma once

#include <cstring>

#include "kernels/cpu/linear_kernel.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/weight_tiles.h"

namespace llm::LLM_CPU_ISA {

// An fma of 16 lanes needs one broadcast load a row: two tiles share it on AVX-512 (16 accumulators
// of 32 registers: 10 loads for 16 fmas), the two halves of a tile on AVX2 (12 of 16 registers).
// One row alone takes twice as many tiles, so that the chains hide the latency of an fma.
#if defined(LLM_CPU_ISA_AVX512)
inline constexpr int kBlockTiles = 2;
inline constexpr int kBlockRows = 8;
#elif defined(LLM_CPU_ISA_AVX2)
inline constexpr int kBlockTiles = 1;
inline constexpr int kBlockRows = 6;
#else
inline constexpr int kBlockTiles = 1;
inline constexpr int kBlockRows = 4;
#endif
inline constexpr int kMaxTiles = 2 * kBlockTiles;

// A piece meets 128 floats of each row: at most 16 KiB of weights of two tiles, a third of a
// first-level cache, beside some rows.
inline constexpr int kPieceFloats = 128;
// Strides are constants, for the sake of addresses, and no multiple of 4 KiB, whose lines would
// share a cache set. Many rows take the columns in narrow blocks; few rows in wide ones, so that
// tiles are read in the order that they lie in memory.
inline constexpr int kNarrowStride = kPieceFloats + 16;
inline constexpr int kScratchFloats = kLinearTaskRows * kNarrowStride;
inline constexpr int kWideRows = 8;
inline constexpr int kWideStride = kScratchFloats / kWideRows;
constexpr int WholePieces(int floats) { return floats / kPieceFloats * kPieceFloats; }

// A step of a tile.
struct TilePlace {
  const uint8_t* tile;
  int64_t step;
};

// One piece of a group of tiles.
struct Piece {
  const uint8_t* weights[kMaxTiles];  // its first steps
  const uint8_t* ahead[kMaxTiles];    // what is read next, or null: not to be asked for
  int steps;
  bool is_first;  // the accumulators begin at zero
  bool is_last;   // the bias is added
  int64_t output;
  int n[kMaxTiles];  // outputs that exist
};

template <typename Step, int kStride, int kRows, int kTiles, int kFloat>
LLM_SIMD void MultiplyRows(const uint8_t* const* w, int k, const float* x, F32x16 (*acc)[kTiles]) {
  typename Step::Weights step[kTiles];
  for (int t = 0; t < kTiles; ++t) {
    step[t] = Step::template LoadStep<kFloat>(w[t] + k * Step::kBytes);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto a = Step::Broadcast(x + r * kStride);
    for (int t = 0; t < kTiles; ++t) acc[r][t] = Step::Multiply(a, step[t], acc[r][t]);
  }
}

template <typename Step, int kStride, int kRows, int kTiles, bool kPrefetch>
__attribute__((noinline)) void RunRows(const LinearTask& task, const Piece& piece, int row,
                                       const float* activations) {
  F32x16 acc[kRows][kTiles];
  float* out = task.out + row * task.out_stride + piece.output;
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) {
      acc[r][t] =
          piece.is_first ? Zero() : Load(out + r * task.out_stride + t * kPackTileRows, piece.n[t]);
    }
  }
  const uint8_t* w[kTiles];
  const uint8_t* ahead[kTiles];
  for (int t = 0; t < kTiles; ++t) {
    w[t] = piece.weights[t];
    ahead[t] = piece.ahead[t];
  }
  const float* a = activations + row * kStride;
  for (int k = 0; k < piece.steps; ++k) {
    if (kPrefetch) {
      for (int t = 0; t < kTiles; ++t) __builtin_prefetch(ahead[t] + k * Step::kBytes);
    }
    const float* x = a + k * Step::kFloats;
    MultiplyRows<Step, kStride, kRows, kTiles, 0>(w, k, x, acc);
    if constexpr (Step::kFloats == 2) {
      MultiplyRows<Step, kStride, kRows, kTiles, 1>(w, k, x + 1, acc);
    }
  }
  const bool add_bias = task.bias != nullptr && piece.is_last;
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) {
      if (add_bias) {
        const float* bias = task.bias + piece.output + t * kPackTileRows;
        acc[r][t] = Add(acc[r][t], Load(bias, piece.n[t]));
      }
      Store(out + r * task.out_stride + t * kPackTileRows, acc[r][t], piece.n[t]);
    }
  }
}

// As many blocks of kRows as are left. The first rows ask for what comes next.
template <typename Step, int kStride, int kTiles, int kRows>
LLM_SIMD int RunBlocks(const LinearTask& task, const Piece& piece, int row, const float* rows) {
  for (; row + kRows <= task.num_rows; row += kRows) {
    if (row == 0 && piece.ahead[0] != nullptr) {
      RunRows<Step, kStride, kRows, kTiles, true>(task, piece, row, rows);
    } else {
      RunRows<Step, kStride, kRows, kTiles, false>(task, piece, row, rows);
    }
  }
  return row;
}

template <typename Step, int kStride, int kTiles>
LLM_SIMD void RunPiece(const LinearTask& task, const Piece& piece, const float* rows) {
  int row = 0;
  if constexpr (kTiles == kBlockTiles) {
    row = RunBlocks<Step, kStride, kTiles, kBlockRows>(task, piece, row, rows);
    if constexpr (kBlockRows > 4) {
      row = RunBlocks<Step, kStride, kTiles, 4>(task, piece, row, rows);
    }
    row = RunBlocks<Step, kStride, kTiles, 2>(task, piece, row, rows);
  }
  RunBlocks<Step, kStride, kTiles, 1>(task, piece, row, rows);
}

// Where the loops stand: steps [begin, end) of the column block, a group of tiles from `output` on.
struct BlockRun {
  int64_t begin;
  int64_t end;
  int64_t all;  // steps of a tile
  int64_t output;
  int64_t step;  // of the piece
};

// The piece after this one in the order of the loops; after the last, the first of the tiles that
// follow.
template <int kTiles, int kPieceSteps>
LLM_SIMD TilePlace NextPiece(const LinearTask& task, const BlockRun& run) {
  const int64_t group_bytes = kTiles * task.tile_bytes;
  const int64_t output = run.output / kPackTileRows * task.tile_bytes;
  if (run.step + kPieceSteps < run.end) return {task.tiles + output, run.step + kPieceSteps};
  if (run.output + kTiles * kPackTileRows < task.num_outputs) {
    return {task.tiles + output + group_bytes, run.begin};
  }
  if (run.end < run.all) return {task.tiles, run.end};
  return {task.tiles + output + group_bytes, 0};
}

template <typename Source, int kStride, int kTiles>
LLM_SIMD void RunGroup(const LinearTask& task, const float* rows, BlockRun run) {
  using Step = typename Source::Step;
  constexpr int kPieceSteps = kPieceFloats / Step::kFloats;
  [[maybe_unused]] alignas(64) float panel[Source::kUsesPanel ? kTiles * kPieceFloats * 16 : 1];
  Piece piece;
  piece.output = run.output;
  const uint8_t* tiles[kTiles];
  for (int t = 0; t < kTiles; ++t) {
    const int64_t left = task.num_outputs - run.output - t * kPackTileRows;
    piece.n[t] = left <= 0 ? 0 : left < kPackTileRows ? static_cast<int>(left) : kPackTileRows;
    // Past the last tile: its neighbour again, computed and not stored.
    tiles[t] = task.tiles + (run.output / kPackTileRows + (left > 0 ? t : 0)) * task.tile_bytes;
  }
  for (run.step = run.begin; run.step < run.end; run.step += kPieceSteps) {
    const int64_t left = run.end - run.step;
    piece.steps = left < kPieceSteps ? static_cast<int>(left) : kPieceSteps;
    piece.is_first = run.step == 0;
    piece.is_last = run.step + piece.steps == run.all;
    const TilePlace next = NextPiece<kTiles, kPieceSteps>(task, run);
    for (int t = 0; t < kTiles; ++t) {
      const TilePlace ahead = {next.tile + t * task.tile_bytes, next.step};
      if constexpr (Source::kUsesPanel) {
        float* decoded = panel + t * kPieceFloats * 16;
        Source::Decode(task, {tiles[t], run.step}, ahead, piece.steps, decoded);
        piece.weights[t] = reinterpret_cast<const uint8_t*>(decoded);
        piece.ahead[t] = nullptr;
      } else {
        piece.weights[t] = tiles[t] + run.step * Step::kBytes;
        piece.ahead[t] = ahead.tile + ahead.step * Step::kBytes;
      }
    }
    RunPiece<Step, kStride, kTiles>(task, piece, rows + (run.step - run.begin) * Step::kFloats);
  }
}

template <typename Source, int kStride, int kTiles>
LLM_SIMD void RunTask(const LinearTask& task, int block_floats) {
  const int64_t block_steps = block_floats / Source::Step::kFloats;
  alignas(64) float rows[kScratchFloats];
  BlockRun run;
  run.all = (task.cols + Source::kStepCols - 1) / Source::kStepCols;
  for (run.begin = 0; run.begin < run.all; run.begin = run.end) {
    run.end = run.begin + block_steps < run.all ? run.begin + block_steps : run.all;
    const int64_t first = run.begin * Source::kStepCols;
    const int64_t last = run.end * Source::kStepCols;
    const int cols = static_cast<int>((last < task.cols ? last : task.cols) - first);
    for (int r = 0; r < task.num_rows; ++r) {
      Source::Gather(task.values + r * task.cols + first, cols, rows + r * kStride);
    }
    for (run.output = 0; run.output < task.num_outputs; run.output += kTiles * kPackTileRows) {
      RunGroup<Source, kStride, kTiles>(task, rows, run);
    }
  }
}

template <typename Source>
void RunSource(const LinearTask& task) {
  if (task.num_rows > kWideRows) {
    return RunTask<Source, kNarrowStride, kBlockTiles>(task, kPieceFloats);
  }
  if (task.num_rows > 1) {
    return RunTask<Source, kWideStride, kBlockTiles>(task, WholePieces(kWideStride));
  }
  RunTask<Source, kWideStride, kMaxTiles>(task, WholePieces(kScratchFloats));
}

}  // namespace llm::LLM_CPU_ISA
