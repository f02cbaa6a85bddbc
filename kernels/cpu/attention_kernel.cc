// Compiled per ISA. Strips of 64 keys: their scores for all rows of a block, then their weighted
// values. Few rows read keys and values as they are stored; many share a decoded
// copy of a tile or two.
#include "kernels/cpu/attention_kernel.h"

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/attention_strip.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace llm::LLM_CPU_ISA {
namespace {

struct Scratch {
  alignas(64) float decoded[kDecodedFloats];
  alignas(64) float queries[kAttentionMaxFloats];  // group after group, [head_dim, R] each
  alignas(64) float scores[kAttentionMaxRows * kStripKeys];  // then weights
  alignas(64) float sums[kAttentionMaxRows * kKeyTile];      // reduced at the end of the split
  int begin[kAttentionMaxRows];                              // visible lanes of the strip
  int end[kAttentionMaxRows];
};

// Queries of a group of rows side by side: one pointer plus a constant reaches each.
void GatherQueries(const AttentionBlock& b, float* queries) {
  for (int row = 0; row < b.num_rows;) {
    const int rows = GroupRows(b.num_rows - row);
    float* out = queries + row * b.head_dim;
    for (int r = 0; r < rows; ++r) {
      const int index = b.row_begin + row + r;
      const float* q = b.q + (index / b.group) * b.q_stride + (index % b.group) * b.head_dim;
      for (int d = 0; d < b.head_dim; ++d) out[d * rows + r] = q[d];
    }
    row += rows;
  }
}

// Tiles [begin, end), whose keys are in `keys`, for all rows.
template <typename Form>
void Score(const AttentionBlock& b, const TileSet& keys, const TileSet& ahead, int begin, int end,
           Scratch& s) {
  for (int row = 0; row < b.num_rows;) {
    const int rows = GroupRows(b.num_rows - row);
    const float* q = s.queries + row * b.head_dim;
    float* scores = s.scores + row * kStripKeys;
    switch (rows) {
      case 1:
        ScoreRows<Form, 1>(q, b.head_dim, keys, ahead, begin, end, scores);
        break;
      case 2:
        ScoreRows<Form, 2>(q, b.head_dim, keys, ahead, begin, end, scores);
        break;
      case 3:
        ScoreRows<Form, 3>(q, b.head_dim, keys, ahead, begin, end, scores);
        break;
      case 4:
        ScoreRows<Form, 4>(q, b.head_dim, keys, ahead, begin, end, scores);
        break;
      default:
        ScoreRows<Form, kRegisterRows>(q, b.head_dim, keys, ahead, begin, end, scores);
    }
    row += rows;
  }
}

// Rows [row, row + num), which all see lanes [begin, end) of the strip.
template <typename Form>
void AddRun(const AttentionBlock& b, const TileSet& tiles, const TileSet& ahead, int row, int num,
            int begin, int end, const Scratch& s, float* values) {
  while (num > 0 && begin < end) {
    const int rows = GroupRows(num);
    const ValueRun run = {s.scores + row * kStripKeys, &tiles, &ahead, begin, end, b.head_dim,
                          values + row * b.head_dim};
    switch (rows) {
      case 1:
        AddValues<Form, 1>(run);
        break;
      case 2:
        AddValues<Form, 2>(run);
        break;
      case 3:
        AddValues<Form, 3>(run);
        break;
      case 4:
        AddValues<Form, 4>(run);
        break;
      default:
        AddValues<Form, kRegisterRows>(run);
    }
    row += rows;
    num -= rows;
  }
}

// Rows that go through the registers together, and what they need of the strip.
struct Group {
  int row;
  int rows;
};

// Lanes of tiles [begin, end) for one group: those that all of its rows see together; those before
// and behind, where a window or the causal edge cuts, each row with its equals. Lanes ascend for
// each row.
template <typename Form>
void AddGroup(const AttentionBlock& b, const TileSet& tiles, const TileSet& ahead,
              const Group& group, int begin, int end, const Scratch& s, float* values) {
  const auto clamp = [&](int lane) {
    const int low = begin * kKeyTile;
    const int high = end * kKeyTile;
    return lane < low ? low : lane > high ? high : lane;
  };
  const int row_end = group.row + group.rows;
  const int common_end = clamp(s.end[group.row]);
  int common_begin = clamp(s.begin[row_end - 1]);
  if (common_end - common_begin == (end - begin) * kKeyTile) {
    return AddRun<Form>(b, tiles, ahead, group.row, group.rows, common_begin, common_end, s,
                        values);
  }
  if (common_begin > common_end) common_begin = common_end;
  const auto add_equals = [&](bool before) {
    for (int r = group.row; r < row_end;) {
      int num = 1;
      while (r + num < row_end && s.begin[r + num] == s.begin[r] && s.end[r + num] == s.end[r]) {
        ++num;
      }
      const int first = clamp(s.begin[r]);
      const int last = clamp(s.end[r]);
      if (before) {
        AddRun<Form>(b, tiles, ahead, r, num, first, common_begin < last ? common_begin : last, s,
                     values);
      } else {
        AddRun<Form>(b, tiles, ahead, r, num, first > common_end ? first : common_end, last, s,
                     values);
      }
      r += num;
    }
  };
  add_equals(true);
  AddRun<Form>(b, tiles, ahead, group.row, group.rows, common_begin, common_end, s, values);
  add_equals(false);
}

// The scores of a tile as softmax takes them: -infinity outside lanes [first, last).
LLM_SIMD F32x16 FinalScore(const AttentionBlock& b, const std::byte* scales, F32x16 score,
                           int first, int last) {
  if (b.token_scales) score = Mul(score, LoadScales(scales));
  score = Mul(score, Set(b.scale));
  if (b.soft_cap > 0) score = Mul(Set(b.soft_cap), Tanh(Div(score, Set(b.soft_cap))));
  const F32x16 lowest = Set(-__builtin_inff());
  if (last < kKeyTile) score = Select(FirstLanes(last), score, lowest);
  if (first > 0) score = Select(FirstLanes(first), lowest, score);
  return score;
}

// What a new maximum of a row changes: everything that the row has summed so far.
LLM_SIMD void RaiseMax(const AttentionBlock& b, int row, float max, Scratch& s,
                       const AttentionPartial& out) {
  const F32x16 factor = Exp(Set(out.max[row] - max));
  out.max[row] = max;
  float* sum = s.sums + row * kKeyTile;
  Store(sum, Mul(Load(sum), factor));
  float* values = out.values + static_cast<int64_t>(row) * b.head_dim;
  for (int d = 0; d < b.head_dim; d += 16) Store(values + d, Mul(Load(values + d), factor));
}

// The tiles of [begin, end) of which a row sees lanes.
struct RowTiles {
  int begin;
  int end;
};
LLM_SIMD RowTiles FindRowTiles(const Scratch& s, int row, int begin, int end) {
  const int first = s.begin[row] / kKeyTile;
  const int last = s.begin[row] < s.end[row] ? (s.end[row] + kKeyTile - 1) / kKeyTile : first;
  return {first > begin ? first : begin, last < end ? last : end};
}

// Makes a row's scores of tiles [begin, end) final. True when one exceeds the row's maximum.
LLM_SIMD bool FinishScores(const AttentionBlock& b, const Strip& strip, int row, int begin, int end,
                           Scratch& s, float max) {
  const RowTiles tiles = FindRowTiles(s, row, begin, end);
  F32x16 largest = Set(-__builtin_inff());
  for (int t = tiles.begin; t < tiles.end; ++t) {
    float* at = s.scores + row * kStripKeys + t * kKeyTile;
    const F32x16 score = FinalScore(b, strip.scales[t], Load(at), s.begin[row] - t * kKeyTile,
                                    s.end[row] - t * kKeyTile);
    Store(at, score);
    largest = Max(largest, score);
  }
  return Any(Less(Set(max), largest));
}

// Turns a row's final scores of tiles [begin, end) into weights relative to its maximum.
LLM_SIMD void Weigh(const AttentionBlock& b, const Strip& strip, int row, int begin, int end,
                    Scratch& s, float row_max) {
  const size_t value_scales = b.value_scales_offset - b.key_scales_offset;
  const RowTiles tiles = FindRowTiles(s, row, begin, end);
  const F32x16 max = Set(row_max);
  F32x16 sum = Load(s.sums + row * kKeyTile);
  for (int t = tiles.begin; t < tiles.end; ++t) {
    float* at = s.scores + row * kStripKeys + t * kKeyTile;
    F32x16 weight = Exp(Sub(Load(at), max));
    sum = Add(sum, weight);
    if (b.token_scales) weight = Mul(weight, LoadScales(strip.scales[t] + value_scales));
    if (b.value_scale != 1.0f) weight = Mul(weight, Set(b.value_scale));
    Store(at, weight);
  }
  Store(s.sums + row * kKeyTile, sum);
}

// Weighs and adds the values of tiles [begin, end). The maximum is taken tile by tile, as if each
// was added at once; but only where it grows (rare after the first tiles) need the tiles before be
// added first.
template <typename Form>
void WeighAndAdd(const AttentionBlock& b, const Strip& strip, const TileSet& values,
                 const TileSet& ahead, int begin, int end, Scratch& s,
                 const AttentionPartial& out) {
  for (Group group = {0, 0}; group.row < b.num_rows; group.row += group.rows) {
    group.rows = GroupRows(b.num_rows - group.row);
    const int row_end = group.row + group.rows;
    bool grows = false;
    for (int row = group.row; row < row_end; ++row) {
      if (FinishScores(b, strip, row, begin, end, s, out.max[row])) grows = true;
    }
    if (!grows) {
      for (int row = group.row; row < row_end; ++row) {
        Weigh(b, strip, row, begin, end, s, out.max[row]);
      }
      AddGroup<Form>(b, values, ahead, group, begin, end, s, out.values);
      continue;
    }
    int added = begin;
    for (int t = begin; t < end; ++t) {
      for (int row = group.row; row < row_end; ++row) {
        const RowTiles tiles = FindRowTiles(s, row, t, t + 1);
        if (tiles.begin >= tiles.end) continue;
        const F32x16 score = Load(s.scores + row * kStripKeys + t * kKeyTile);
        if (Any(Less(Set(out.max[row]), score))) {
          if (added < t) AddGroup<Form>(b, values, ahead, group, added, t, s, out.values);
          added = t;
          RaiseMax(b, row, ReduceMax(score), s, out);
        }
        Weigh(b, strip, row, t, t + 1, s, out.max[row]);
      }
    }
    AddGroup<Form>(b, values, ahead, group, added, end, s, out.values);
  }
}

// Lanes of the strip at `key` that each row sees. False when no row sees any.
bool FindVisible(const AttentionBlock& b, int key, Scratch& s) {
  bool any = false;
  for (int r = 0; r < b.num_rows; ++r) {
    const int begin = b.FirstKey(r) - key;
    const int end = b.Position(r) + 1 - key;
    s.begin[r] = begin < 0 ? 0 : begin > kStripKeys ? kStripKeys : begin;
    s.end[r] = end < 0 ? 0 : end > kStripKeys ? kStripKeys : end;
    any = any || s.begin[r] < s.end[r];
  }
  return any;
}

template <typename Form>
void AttendStrip(const AttentionBlock& b, const Strip& strip, int last, Scratch& s,
                 const AttentionPartial& out) {
  const Strip ahead = FindAhead(b, strip, last);
  const bool decode = Form::kBytes != Decoded::kBytes && b.num_rows > kRegisterRows;
  if (decode) {
    DecodeTiles<Form>(b, strip, strip.keys, ahead.keys, s.decoded,
                      [&](const TileSet& keys, int begin, int end) {
                        Score<Decoded>(b, keys, keys, begin, end, s);
                      });
  } else {
    Score<Form>(b, strip.keys, ahead.keys, strip.begin, strip.end, s);
  }
  if (decode) {
    DecodeTiles<Form>(b, strip, strip.values, ahead.values, s.decoded,
                      [&](const TileSet& values, int begin, int end) {
                        WeighAndAdd<Decoded>(b, strip, values, values, begin, end, s, out);
                      });
  } else {
    WeighAndAdd<Form>(b, strip, strip.values, ahead.values, strip.begin, strip.end, s, out);
  }
}

// int4 in groups: decoded with its scales, however many rows read it.
struct Grouped4 {};
template <>
void AttendStrip<Grouped4>(const AttentionBlock& b, const Strip& strip, int /*last*/, Scratch& s,
                           const AttentionPartial& out) {
  ForDecoded(
      b, strip, s.decoded, [&](int t, float* copy) { DecodeKeys4(b, strip, t, copy); },
      [&](const TileSet& keys, int begin, int end) {
        Score<Decoded>(b, keys, keys, begin, end, s);
      });
  ForDecoded(
      b, strip, s.decoded, [&](int t, float* copy) { DecodeValues4(b, strip, t, copy); },
      [&](const TileSet& values, int begin, int end) {
        WeighAndAdd<Decoded>(b, strip, values, values, begin, end, s, out);
      });
}

template <typename Form>
void AttendSplitAs(const AttentionBlock& b, int split, const AttentionPartial& out) {
  Scratch s;
  GatherQueries(b, s.queries);
  const int size = b.num_rows * b.head_dim;
  for (int i = 0; i < size; i += 16) Store(out.values + i, Zero());
  for (int r = 0; r < b.num_rows; ++r) {
    out.max[r] = -__builtin_inff();
    Store(s.sums + r * kKeyTile, Zero());
  }
  const int split_begin = split * kAttentionSplitKeys;
  const int first = b.FirstKey(0);
  const int last = b.Position(b.num_rows - 1);
  const int split_last = split_begin + kAttentionSplitKeys - 1;
  const int first_strip = first / kStripKeys * kStripKeys;
  for (int key = first_strip > split_begin ? first_strip : split_begin;
       key <= (last < split_last ? last : split_last); key += kStripKeys) {
    if (!FindVisible(b, key, s)) continue;
    AttendStrip<Form>(b, FindStrip(b, key, first, last), last, s, out);
  }
  for (int r = 0; r < b.num_rows; ++r) out.sum[r] = ReduceAdd(Load(s.sums + r * kKeyTile));
}

}  // namespace

void AttendSplit(const AttentionBlock& b, int split, const AttentionPartial& out) {
  switch (b.dtype) {
    case DType::kF16:
      return AttendSplitAs<Stored<uint16_t, LoadF16, true>>(b, split, out);
    case DType::kBF16:
      return AttendSplitAs<Stored<uint16_t, LoadBF16, true>>(b, split, out);
    case DType::kF8E4M3:
      return AttendSplitAs<Stored<uint8_t, LoadF8E4M3, true>>(b, split, out);
    case DType::kI8:
      return AttendSplitAs<Stored<int8_t, LoadI8, true>>(b, split, out);
    case DType::kI4:
      return AttendSplitAs<Grouped4>(b, split, out);
    default:
      return AttendSplitAs<Stored<float, LoadF32, true>>(b, split, out);
  }
}

}  // namespace llm::LLM_CPU_ISA
