// Compiled per ISA. Strips of 64 keys: their scores for all rows of a block, a softmax of each row,
// their weighted values. Few rows read keys and values as they are stored; many share a decoded
// copy of a tile or two.
#include "kernels/cpu/attention_kernel.h"

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace llm::LLM_CPU_ISA {
namespace {

// Two decoded tiles of the usual head sizes, one of the largest: 32 KiB of the first-level cache.
constexpr int kDecodedFloats = kAttentionMaxHeadDim * kKeyTile;

struct Scratch {
  alignas(64) float decoded[kDecodedFloats];
  alignas(64) float queries[kAttentionMaxFloats];  // group after group, [head_dim, R] each
  alignas(64) float scores[kAttentionMaxRows * kStripKeys];  // then weights
  alignas(64) float sums[kAttentionMaxRows * kKeyTile];      // reduced at the end of the split
  int begin[kAttentionMaxRows];                              // visible lanes of the strip
  int end[kAttentionMaxRows];
};

// 64 keys that start at position `key`, a multiple of 64; tiles [begin, end) of them are seen.
struct Strip {
  int key;
  int begin;
  int end;
  TileSet keys;
  TileSet values;
  const std::byte* scales[kStripTiles];  // of keys; those of values follow
};

bool IsScaled(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kI8; }

Strip FindStrip(const AttentionBlock& b, int key, int first, int last) {
  Strip strip = {};
  strip.key = key;
  strip.begin = first > key ? (first - key) / kKeyTile : 0;
  strip.end = last - key < kStripKeys ? (last - key) / kKeyTile + 1 : kStripTiles;
  for (int t = strip.begin; t < strip.end; ++t) {
    const int at = key + t * kKeyTile;
    const std::byte* region =
        b.base + static_cast<size_t>(b.blocks[at / b.block_size]) * b.block_bytes;
    const size_t offset = static_cast<size_t>(at % b.block_size);
    const size_t bytes = offset * static_cast<size_t>(b.head_dim) * DTypeBytes(b.dtype);
    strip.keys.at[t] = region + bytes;
    strip.values.at[t] = region + b.values_offset + bytes;
    strip.scales[t] = region + b.key_scales_offset + 2 * offset;
  }
  return strip;
}

// What to ask the memory for while `strip` is computed: the next one, or where there is none,
// `strip` itself, which is at hand.
Strip FindAhead(const AttentionBlock& b, const Strip& strip, int last) {
  Strip ahead = strip;
  const int key = strip.key + kStripKeys;
  if (key > last) return ahead;
  const Strip next = FindStrip(b, key, key, last);
  for (int t = next.begin; t < next.end; ++t) {
    ahead.keys.at[t] = next.keys.at[t];
    ahead.values.at[t] = next.values.at[t];
    if (IsScaled(b.dtype)) __builtin_prefetch(next.scales[t]);
  }
  return ahead;
}

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

// Lanes of tiles [begin, end) for all rows. Rows that fill the registers take the lanes that all of
// them see together; each takes those before and behind, where a window or the causal edge cuts,
// with its equals. Lanes ascend for each row.
template <typename Form>
void Add(const AttentionBlock& b, const TileSet& tiles, const TileSet& ahead, int begin, int end,
         const Scratch& s, float* values) {
  const auto clamp = [&](int lane) {
    const int low = begin * kKeyTile;
    const int high = end * kKeyTile;
    return lane < low ? low : lane > high ? high : lane;
  };
  for (int row = 0; row < b.num_rows;) {
    const int rows = GroupRows(b.num_rows - row);
    int common_begin = clamp(s.begin[row + rows - 1]);
    const int common_end = clamp(s.end[row]);
    if (common_begin > common_end) common_begin = common_end;
    const auto add_equals = [&](bool before) {
      for (int r = row; r < row + rows;) {
        int num = 1;
        while (r + num < row + rows && s.begin[r + num] == s.begin[r] && s.end[r + num] == s.end[r])
          ++num;
        const int first = clamp(s.begin[r]);
        const int last = clamp(s.end[r]);
        if (before) {
          AddRun<Form>(b, tiles, ahead, r, num, first, common_begin, s, values);
        } else {
          AddRun<Form>(b, tiles, ahead, r, num, first > common_end ? first : common_end, last, s,
                       values);
        }
        r += num;
      }
    };
    add_equals(true);
    AddRun<Form>(b, tiles, ahead, row, rows, common_begin, common_end, s, values);
    add_equals(false);
    row += rows;
  }
}

// Calls use(tiles, begin, end) for decoded copies of tiles [strip.begin, strip.end), as many at
// once as fit.
template <typename Form, typename UseFn>
LLM_SIMD void DecodeTiles(const AttentionBlock& b, const Strip& strip, const TileSet& tiles,
                          const TileSet& ahead, float* decoded, UseFn use) {
  const int count = 2 * b.head_dim * kKeyTile <= kDecodedFloats ? 2 : 1;
  for (int begin = strip.begin; begin < strip.end; begin += count) {
    const int end = begin + count < strip.end ? begin + count : strip.end;
    TileSet copies = {};
    for (int t = begin; t < end; ++t) {
      float* out = decoded + (t - begin) * b.head_dim * kKeyTile;
      for (int i = 0; i < b.head_dim; ++i) {
        Store(out + i * kKeyTile, Form::At(tiles.at[t] + i * Form::kBytes));
        PrefetchVector<Form>(ahead.at[t], i);
      }
      copies.at[t] = reinterpret_cast<const std::byte*>(out);
    }
    use(copies, begin, end);
  }
}

LLM_SIMD void ScaleRow(float* values, int head_dim, F32x16 factor) {
  for (int d = 0; d < head_dim; d += 16) Store(values + d, Mul(Load(values + d), factor));
}

LLM_SIMD F32x16 LoadScales(const std::byte* scales) {
  return LoadF16(reinterpret_cast<const uint16_t*>(scales));
}

// The scores of a tile as softmax takes them; lanes that the row does not see are -infinity.
LLM_SIMD F32x16 FinalScore(const AttentionBlock& b, const Strip& strip, int tile, F32x16 score,
                           int begin, int end) {
  if (IsScaled(b.dtype)) score = Mul(score, LoadScales(strip.scales[tile]));
  score = Mul(score, Set(b.scale));
  if (b.soft_cap > 0) score = Mul(Set(b.soft_cap), Tanh(Div(score, Set(b.soft_cap))));
  const F32x16 lowest = Set(-__builtin_inff());
  const int first = begin - tile * kKeyTile;
  const int last = end - tile * kKeyTile;
  if (last < kKeyTile) score = Select(FirstLanes(last), score, lowest);
  if (first > 0) score = Select(FirstLanes(first), lowest, score);
  return score;
}

// Turns a row's scores into weights relative to the running maximum. When a visible score exceeds
// it (rare after the first strips), what the row has summed so far is rescaled.
LLM_SIMD void SoftmaxRow(const AttentionBlock& b, const Strip& strip, int row, Scratch& s,
                         const AttentionPartial& out) {
  float* scores = s.scores + row * kStripKeys;
  const int begin = s.begin[row] / kKeyTile;
  const int end = (s.end[row] + kKeyTile - 1) / kKeyTile;
  F32x16 largest = Set(-__builtin_inff());
  for (int t = begin; t < end; ++t) {
    float* at = scores + t * kKeyTile;
    const F32x16 score = FinalScore(b, strip, t, Load(at), s.begin[row], s.end[row]);
    Store(at, score);
    largest = Max(largest, score);
  }
  F32x16 sum = Load(s.sums + row * kKeyTile);
  if (Any(Less(Set(out.max[row]), largest))) {
    const float strip_max = ReduceMax(largest);
    const F32x16 factor = Exp(Set(out.max[row] - strip_max));
    out.max[row] = strip_max;
    sum = Mul(sum, factor);
    ScaleRow(out.values + static_cast<int64_t>(row) * b.head_dim, b.head_dim, factor);
  }
  const F32x16 max = Set(out.max[row]);
  const size_t value_scales = b.value_scales_offset - b.key_scales_offset;
  for (int t = begin; t < end; ++t) {
    F32x16 weight = Exp(Sub(Load(scores + t * kKeyTile), max));
    sum = Add(sum, weight);
    if (IsScaled(b.dtype)) weight = Mul(weight, LoadScales(strip.scales[t] + value_scales));
    Store(scores + t * kKeyTile, weight);
  }
  Store(s.sums + row * kKeyTile, sum);
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

LLM_SIMD bool SeesSplit(const AttentionBlock& b, int row, int split) {
  return b.Position(row) >= split * kAttentionSplitKeys &&
         b.FirstKey(row) < (split + 1) * kAttentionSplitKeys;
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
  for (int r = 0; r < b.num_rows; ++r) {
    if (s.begin[r] < s.end[r]) SoftmaxRow(b, strip, r, s, out);
  }
  if (decode) {
    DecodeTiles<Form>(b, strip, strip.values, ahead.values, s.decoded,
                      [&](const TileSet& values, int begin, int end) {
                        Add<Decoded>(b, values, values, begin, end, s, out.values);
                      });
  } else {
    Add<Form>(b, strip.values, ahead.values, strip.begin, strip.end, s, out.values);
  }
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
    default:
      return AttendSplitAs<Stored<float, LoadF32, true>>(b, split, out);
  }
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
