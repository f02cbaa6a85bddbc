// Compiled per ISA. Key tiles of 16 are decoded once and shared by all rows of a block; rows go
// through them in groups that fill the registers. A row's arithmetic does not depend on its group:
// one chain per key over the dimensions, one chain per dimension over the keys.
#include "kernels/cpu/attention_kernel.h"

#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"
#include "kernels/kv_layout.h"

namespace llm::LLM_CPU_ISA {
namespace {

// Rows that share a load: 8 accumulators of one register on avx512, 4 of two on avx2.
#if defined(LLM_CPU_ISA_AVX512)
constexpr int kRegisterRows = 8;
#else
constexpr int kRegisterRows = 4;
#endif

struct Scratch {
  // Decoded keys [head_dim, 16], later values [16, head_dim].
  alignas(64) float tile[kAttentionMaxHeadDim * kKeyTile];
  alignas(64) float scores[kAttentionMaxRows * kKeyTile];  // then weights
  alignas(64) float sums[kAttentionMaxRows * kKeyTile];    // reduced at the end of the split
  int begin[kAttentionMaxRows];                            // visible lanes of the tile
  int end[kAttentionMaxRows];
};

// One tile of 16 keys that starts at position `key`.
struct Tile {
  int key;
  const std::byte* keys;
  const std::byte* values;
  const std::byte* key_scales;
  const std::byte* value_scales;
};

LLM_SIMD Tile FindTile(const AttentionBlock& b, int key) {
  const std::byte* region =
      b.base + static_cast<size_t>(b.blocks[key / b.block_size]) * b.block_bytes;
  const size_t offset = static_cast<size_t>(key % b.block_size);
  const size_t bytes = offset * static_cast<size_t>(b.head_dim) * DTypeBytes(b.dtype);
  return {key, region + bytes, region + b.values_offset + bytes,
          region + b.key_scales_offset + 2 * offset, region + b.value_scales_offset + 2 * offset};
}

// 16 * head_dim elements in f32: in place when they are, else decoded into `tile`.
LLM_SIMD const float* Decode(DType dtype, const std::byte* source, int count, float* tile) {
  switch (dtype) {
    case DType::kF16:
      for (int i = 0; i < count; i += 16) {
        Store(tile + i, LoadF16(reinterpret_cast<const uint16_t*>(source) + i));
      }
      return tile;
    case DType::kBF16:
      for (int i = 0; i < count; i += 16) {
        Store(tile + i, LoadBF16(reinterpret_cast<const uint16_t*>(source) + i));
      }
      return tile;
    case DType::kF8E4M3:
      for (int i = 0; i < count; i += 16) {
        Store(tile + i, LoadF8E4M3(reinterpret_cast<const uint8_t*>(source) + i));
      }
      return tile;
    case DType::kI8:
      for (int i = 0; i < count; i += 16) {
        Store(tile + i, LoadI8(reinterpret_cast<const int8_t*>(source) + i));
      }
      return tile;
    default:
      return reinterpret_cast<const float*>(source);
  }
}

LLM_SIMD bool IsScaled(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kI8; }

LLM_SIMD F32x16 LoadScales(const std::byte* scales) {
  return LoadF16(reinterpret_cast<const uint16_t*>(scales));
}

// scores[r, lane] = q[r] . key of the lane, for R rows from `row`; rows beyond the last repeat it.
template <int R>
LLM_SIMD void Scores(const AttentionBlock& b, int row, const float* keys, float* scores) {
  const float* q[R];
  F32x16 sum[R];
  for (int r = 0; r < R; ++r) {
    const int last = row + r < b.num_rows ? row + r : b.num_rows - 1;
    const int index = b.row_begin + last;
    q[r] = b.q + (index / b.group) * b.q_stride + (index % b.group) * b.head_dim;
    sum[r] = Zero();
  }
  for (int d = 0; d < b.head_dim; ++d) {
    const F32x16 key = Load(keys + d * kKeyTile);
    for (int r = 0; r < R; ++r) sum[r] = Fma(Set(q[r][d]), key, sum[r]);
  }
  for (int r = 0; r < R && row + r < b.num_rows; ++r) {
    Store(scores + (row + r) * kKeyTile, sum[r]);
  }
}

void AllScores(const AttentionBlock& b, const float* keys, float* scores) {
  int row = 0;
  for (; row + kRegisterRows <= b.num_rows; row += kRegisterRows) {
    Scores<kRegisterRows>(b, row, keys, scores);
  }
  const int left = b.num_rows - row;
  if (left == 1) Scores<1>(b, row, keys, scores);
  if (left == 2) Scores<2>(b, row, keys, scores);
  if (left > 2 && left <= 4) Scores<4>(b, row, keys, scores);
  if (left > 4) Scores<kRegisterRows>(b, row, keys, scores);
}

// values[r] += weights of lanes [begin, end) times those lanes' values, for R rows that see the
// same lanes; rows beyond `num` repeat the last, and write the same result again.
template <int R>
LLM_SIMD void Accumulate(int num, const float* weights, const float* tile, int begin, int end,
                         int head_dim, float* values) {
  int row[R];
  for (int r = 0; r < R; ++r) row[r] = r < num ? r : num - 1;
  for (int d = 0; d < head_dim; d += 16) {
    F32x16 sum[R];
    for (int r = 0; r < R; ++r) sum[r] = Load(values + row[r] * head_dim + d);
    for (int lane = begin; lane < end; ++lane) {
      const F32x16 value = Load(tile + lane * head_dim + d);
      for (int r = 0; r < R; ++r) {
        sum[r] = Fma(Set(weights[row[r] * kKeyTile + lane]), value, sum[r]);
      }
    }
    for (int r = 0; r < R; ++r) Store(values + row[r] * head_dim + d, sum[r]);
  }
}

void AccumulateAll(const AttentionBlock& b, const Scratch& s, const float* tile, float* values) {
  for (int row = 0; row < b.num_rows;) {
    const int begin = s.begin[row];
    const int end = s.end[row];
    int num = 1;
    while (num < kRegisterRows && row + num < b.num_rows && s.begin[row + num] == begin &&
           s.end[row + num] == end) {
      ++num;
    }
    const float* weights = s.scores + row * kKeyTile;
    float* out = values + static_cast<int64_t>(row) * b.head_dim;
    if (begin < end) {
      if (num == 1) Accumulate<1>(num, weights, tile, begin, end, b.head_dim, out);
      if (num == 2) Accumulate<2>(num, weights, tile, begin, end, b.head_dim, out);
      if (num > 2 && num <= 4) Accumulate<4>(num, weights, tile, begin, end, b.head_dim, out);
      if (num > 4) Accumulate<kRegisterRows>(num, weights, tile, begin, end, b.head_dim, out);
    }
    row += num;
  }
}

LLM_SIMD void ScaleRow(float* values, int head_dim, F32x16 factor) {
  for (int d = 0; d < head_dim; d += 16) Store(values + d, Mul(Load(values + d), factor));
}

// Turns a row's scores into weights relative to the running maximum. When a visible score exceeds
// it (rare after the first tiles), what the row has summed so far is rescaled.
LLM_SIMD void SoftmaxRow(const AttentionBlock& b, const Tile& tile, int row, Scratch& s,
                         const AttentionPartial& out) {
  const F32x16 lowest = Set(-__builtin_inff());
  float* scores = s.scores + row * kKeyTile;
  F32x16 score = Load(scores);
  if (IsScaled(b.dtype)) score = Mul(score, LoadScales(tile.key_scales));
  score = Mul(score, Set(b.scale));
  if (b.soft_cap > 0) score = Mul(Set(b.soft_cap), Tanh(Div(score, Set(b.soft_cap))));
  score = Select(FirstLanes(s.end[row]), score, lowest);
  if (s.begin[row] > 0) score = Select(FirstLanes(s.begin[row]), lowest, score);

  F32x16 sum = Load(s.sums + row * kKeyTile);
  if (Any(Less(Set(out.max[row]), score))) {
    const float tile_max = ReduceMax(score);
    const F32x16 factor = Exp(Set(out.max[row] - tile_max));
    out.max[row] = tile_max;
    sum = Mul(sum, factor);
    ScaleRow(out.values + static_cast<int64_t>(row) * b.head_dim, b.head_dim, factor);
  }
  F32x16 weight = Exp(Sub(score, Set(out.max[row])));
  Store(s.sums + row * kKeyTile, Add(sum, weight));
  if (IsScaled(b.dtype)) weight = Mul(weight, LoadScales(tile.value_scales));
  Store(scores, weight);
}

// Lanes of the tile at `key` that each row sees. False when no row sees any.
LLM_SIMD bool FindVisible(const AttentionBlock& b, int key, Scratch& s) {
  bool any = false;
  for (int r = 0; r < b.num_rows; ++r) {
    const int begin = b.FirstKey(r) - key;
    const int end = b.Position(r) + 1 - key;
    s.begin[r] = begin < 0 ? 0 : begin > kKeyTile ? kKeyTile : begin;
    s.end[r] = end < 0 ? 0 : end > kKeyTile ? kKeyTile : end;
    any = any || s.begin[r] < s.end[r];
  }
  return any;
}

LLM_SIMD bool SeesSplit(const AttentionBlock& b, int row, int split) {
  return b.Position(row) >= split * kAttentionSplitKeys &&
         b.FirstKey(row) < (split + 1) * kAttentionSplitKeys;
}

}  // namespace

void AttendSplit(const AttentionBlock& b, int split, const AttentionPartial& out) {
  Scratch s;
  const int size = b.num_rows * b.head_dim;
  for (int i = 0; i < size; i += 16) Store(out.values + i, Zero());
  for (int r = 0; r < b.num_rows; ++r) {
    out.max[r] = -__builtin_inff();
    Store(s.sums + r * kKeyTile, Zero());
  }
  const int split_begin = split * kAttentionSplitKeys;
  const int first = b.FirstKey(0) / kKeyTile * kKeyTile;
  const int last = b.Position(b.num_rows - 1);
  const int split_last = split_begin + kAttentionSplitKeys - 1;
  const int end = last < split_last ? last : split_last;
  for (int key = first > split_begin ? first : split_begin; key <= end; key += kKeyTile) {
    if (!FindVisible(b, key, s)) continue;
    const Tile tile = FindTile(b, key);
    const int count = b.head_dim * kKeyTile;
    AllScores(b, Decode(b.dtype, tile.keys, count, s.tile), s.scores);
    for (int r = 0; r < b.num_rows; ++r) {
      if (s.begin[r] < s.end[r]) SoftmaxRow(b, tile, r, s, out);
    }
    AccumulateAll(b, s, Decode(b.dtype, tile.values, count, s.tile), out.values);
  }
  for (int r = 0; r < b.num_rows; ++r) out.sum[r] = ReduceAdd(Load(s.sums + r * kKeyTile));
}

void MergeSplit(const AttentionBlock& b, int split, const AttentionPartial& part,
                const AttentionPartial& merged) {
  for (int r = 0; r < b.num_rows; ++r) {
    if (!SeesSplit(b, r, split)) continue;
    const float* from = part.values + static_cast<int64_t>(r) * b.head_dim;
    float* to = merged.values + static_cast<int64_t>(r) * b.head_dim;
    if (split == b.FirstKey(r) / kAttentionSplitKeys) {
      merged.max[r] = part.max[r];
      merged.sum[r] = part.sum[r];
      for (int d = 0; d < b.head_dim; d += 16) Store(to + d, Load(from + d));
      continue;
    }
    const float max = merged.max[r] > part.max[r] ? merged.max[r] : part.max[r];
    float factors[16];
    const F32x16 keep = Exp(Set(merged.max[r] - max));
    const F32x16 take = Exp(Set(part.max[r] - max));
    for (int d = 0; d < b.head_dim; d += 16) {
      Store(to + d, Fma(Load(from + d), take, Mul(Load(to + d), keep)));
    }
    Store(factors, Fma(Set(part.sum[r]), take, Mul(Set(merged.sum[r]), keep)));
    merged.sum[r] = factors[0];
    merged.max[r] = max;
  }
}

void FinishAttention(const AttentionBlock& b, const AttentionPartial& merged,
                     const Activations& out, int64_t first_element) {
  for (int r = 0; r < b.num_rows; ++r) {
    const int index = b.row_begin + r;
    const int64_t at =
        first_element + (index / b.group) * out.cols + (index % b.group) * b.head_dim;
    const float* values = merged.values + static_cast<int64_t>(r) * b.head_dim;
    const F32x16 sum = Set(merged.sum[r]);
    for (int d = 0; d < b.head_dim; d += 32) {
      const Columns32 c = LoadColumns(values, d, b.head_dim);
      StoreResults(out, at + d, CountColumns(d, b.head_dim), Div(c.a, sum), Div(c.b, sum));
    }
  }
}

void QuantizeRow(const Activations& out, int64_t row, const float* values) {
  for (int64_t col = 0; col < out.cols; col += 32) {
    QuantizeGroup(out, row * out.cols + col, Load(values + col), Load(values + col + 16));
  }
}

}  // namespace llm::LLM_CPU_ISA
