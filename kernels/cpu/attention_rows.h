// The two products of attention, keys times queries and weights times values, for rows that fill
// the registers.
//
// A row's arithmetic does not depend on what shares the registers with it: one chain per key over
// the dimensions, one chain per dimension over the keys.
//
// Include it only from sources that are compiled per ISA.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd.h"
#include "kernels/kv_layout.h"

namespace llm::LLM_CPU_ISA {

// Keys are taken in strips of four tiles, which start at multiples of 64 positions: sums enough to
// fill the registers with few rows, and a strip ahead is time enough for the memory.
inline constexpr int kStripTiles = 4;
inline constexpr int kStripKeys = kStripTiles * kKeyTile;

// Of one matrix of a strip. Tiles that lie outside what the block sees are null.
struct TileSet {
  const std::byte* at[kStripTiles];
};

// Rows that share a load, and how many registers of keys or dimensions each of them takes in, so
// that the sums are at least as many as hide the latency of an fma and fit beside their operands:
// up to 16 registers on avx512, 8 on avx2 (where F32x16 is two).
#if defined(LLM_CPU_ISA_AVX512)
inline constexpr int kRegisterRows = 8;
template <int R>
inline constexpr int kDepth = R <= 4 ? 4 : 2;
#else
inline constexpr int kRegisterRows = 4;
template <int R>
inline constexpr int kDepth = R <= 2 ? 2 : 1;
#endif

// How many of `left` rows go through the registers together.
constexpr int GroupRows(int left) {
  return left >= kRegisterRows ? kRegisterRows : left >= 4 ? 4 : left;
}

// How 16 elements become f32. kPrefetch: they come from memory, so that those to come are worth
// asking for.
template <typename Element, F32x16 (*kLoad)(const Element*), bool kFromMemory>
struct Stored {
  static constexpr int kBytes = kKeyTile * static_cast<int>(sizeof(Element));
  static constexpr bool kPrefetch = kFromMemory;
  LLM_SIMD F32x16 At(const std::byte* p) { return kLoad(reinterpret_cast<const Element*>(p)); }
};
LLM_SIMD F32x16 LoadF32(const float* p) { return Load(p); }
using Decoded = Stored<float, LoadF32, false>;

// Asks for the line of vector `index` at `p`, once a line.
template <typename Form>
LLM_SIMD void PrefetchVector(const std::byte* p, int index) {
  if (Form::kPrefetch && index * Form::kBytes % 64 == 0) {
    __builtin_prefetch(p + index * Form::kBytes);
  }
}

// scores[r, lane] = q[r] . key of the lane, for R rows and T tiles.
template <typename Form, int R, int T>
LLM_SIMD void ScoreTiles(const float* q,  // [head_dim, R]
                         int head_dim, const std::byte* const* tiles, const std::byte* const* ahead,
                         float* scores) {  // row stride kStripKeys
  F32x16 sum[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) sum[r][t] = Zero();
  }
  for (int d = 0; d < head_dim; ++d) {
    F32x16 key[T];
    for (int t = 0; t < T; ++t) {
      key[t] = Form::At(tiles[t] + d * Form::kBytes);
      PrefetchVector<Form>(ahead[t], d);
    }
    for (int r = 0; r < R; ++r) {
      const F32x16 a = Set(q[d * R + r]);
      for (int t = 0; t < T; ++t) sum[r][t] = Fma(a, key[t], sum[r][t]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) Store(scores + r * kStripKeys + t * kKeyTile, sum[r][t]);
  }
}

// Tiles [begin, end) of a strip.
template <typename Form, int R>
__attribute__((noinline)) void ScoreRows(const float* q, int head_dim, const TileSet& keys,
                                         const TileSet& ahead, int begin, int end, float* scores) {
  int t = begin;
  for (; t + kDepth<R> <= end; t += kDepth<R>) {
    ScoreTiles<Form, R, kDepth<R>>(q, head_dim, keys.at + t, ahead.at + t, scores + t * kKeyTile);
  }
  for (; t < end; ++t) {
    ScoreTiles<Form, R, 1>(q, head_dim, keys.at + t, ahead.at + t, scores + t * kKeyTile);
  }
}

// What rows that see the same lanes add up: values[r] += weights of lanes [begin, end) of the strip
// times those lanes' values.
struct ValueRun {
  const float* weights;  // row stride kStripKeys
  const TileSet* tiles;
  const TileSet* ahead;
  int begin;
  int end;
  int head_dim;
  float* values;  // row stride head_dim
};

// Dimensions [d, d + 16 C) of R rows.
template <typename Form, int R, int C>
LLM_SIMD void AddDimensions(const ValueRun& run, int d) {
  const int row_bytes = run.head_dim / 16 * Form::kBytes;
  F32x16 sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) sum[r][c] = Load(run.values + r * run.head_dim + d + 16 * c);
  }
  for (int lane = run.begin; lane < run.end;) {
    const int tile = lane / kKeyTile;
    const int tile_end = (tile + 1) * kKeyTile < run.end ? (tile + 1) * kKeyTile : run.end;
    const int64_t offset = lane % kKeyTile * row_bytes + d / 16 * Form::kBytes;
    const std::byte* row = run.tiles->at[tile] + offset;
    const std::byte* ahead = run.ahead->at[tile] + offset;
    for (; lane < tile_end; ++lane, row += row_bytes, ahead += row_bytes) {
      F32x16 value[C];
      for (int c = 0; c < C; ++c) {
        value[c] = Form::At(row + c * Form::kBytes);
        PrefetchVector<Form>(ahead, c);
      }
      for (int r = 0; r < R; ++r) {
        const F32x16 weight = Set(run.weights[r * kStripKeys + lane]);
        for (int c = 0; c < C; ++c) sum[r][c] = Fma(weight, value[c], sum[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) Store(run.values + r * run.head_dim + d + 16 * c, sum[r][c]);
  }
}

template <typename Form, int R>
__attribute__((noinline)) void AddValues(const ValueRun& run) {
  int d = 0;
  for (; d + 16 * kDepth<R> <= run.head_dim; d += 16 * kDepth<R>) {
    AddDimensions<Form, R, kDepth<R>>(run, d);
  }
  for (; d < run.head_dim; d += 16) AddDimensions<Form, R, 1>(run, d);
}

}  // namespace llm::LLM_CPU_ISA
