// Attention of 16 rows of a kv head, for sequences that have no more: a block's warps share them.
//
// A round is a strip of 32 keys for each warp. A warp copies its strip and takes the products of
// its keys; the strips' maxima, then their weights, go to all through shared memory; and of the
// values each warp adds up its own dimensions, strip after strip. So a row has the order of
// attention_kernel, and a round's bytes are on their way together.
#pragma once

#include "kernels/cuda/attention_copies.cuh"
#include "kernels/cuda/attention_part.cuh"
#include "kernels/cuda/launch.cuh"

namespace llm {

// Keys of a round and values of one or two have to fit the least shared memory of the targets; of 8
// bits and less, twice that of sm_80.
template <DType kType>
constexpr int kRoundWarps = kType == DType::kF32 ? 2 : 4;
template <DType kType>
constexpr int kValueStages = DTypeBits(kType) < 16 ? 2 : 1;

template <DType kType>
struct RoundShared {
  static constexpr int kWarps = kRoundWarps<kType>;
  static constexpr int kSlabBytes = Slab<kType>::kBytes;
  static constexpr int kSlabs = kWarps * (1 + kValueStages<kType>);
  std::byte* keys;    // [kWarps, kSlabBytes]
  std::byte* values;  // [kValueStages, kWarps, kSlabBytes]
  float4* weights;    // [kWarps, 4, kWarp]: a lane's [4][4]
  float2* sums;       // [kWarps, kWarp]: of a lane's weights
  float* largest;     // [kWarps, 16]: scores of each row
  AttentionQueries queries;

  static __device__ __forceinline__ RoundShared View(int head_dim) {
    std::byte* memory = DynamicShared<std::byte>();
    float4* weights = reinterpret_cast<float4*>(memory + kSlabs * kSlabBytes);
    float2* sums = reinterpret_cast<float2*>(weights + kWarps * 4 * kWarp);
    AttentionRow* where = reinterpret_cast<AttentionRow*>(sums + kWarps * kWarp);
    float* scales = reinterpret_cast<float*>(where + 16);
    float* largest = scales + 16;
    uint16_t* parts = reinterpret_cast<uint16_t*>(largest + kWarps * 16);
    return {memory,  memory + kWarps * kSlabBytes,
            weights, sums,
            largest, {parts, scales, where, 16, QueryStride(head_dim)}};
  }
  static size_t Bytes(int head_dim) {
    return static_cast<size_t>(kSlabs * kSlabBytes) +
           kWarps * kWarp * (4 * sizeof(float4) + sizeof(float2)) +
           16 * (sizeof(AttentionRow) + sizeof(float) + kWarps * sizeof(float)) +
           static_cast<size_t>(kMetParts<kType> * 16 * QueryStride(head_dim)) * sizeof(uint16_t);
  }
};

// A warp's strips on their way.
template <DType kType>
struct StripCopies {
  const KvArgs& kv;
  const AttentionRows& rows;
  TileTable table;

  __device__ __forceinline__ bool Sees(int key) const {
    return key < rows.end_key && key + kStripKeys > rows.first_key;
  }
  __device__ __forceinline__ void Copy(int key, bool values, std::byte* slab) {
    // Of a new split the warp's first strip is the first to be copied, its keys before its values.
    if (!values && key % kSplitKeys < kRoundWarps<kType> * kStripKeys) table.Fetch(kv, rows, key);
    if (Sees(key)) {
      const TilePlace tiles[2] = {FindTile(kv, rows, table, key),
                                  FindTile(kv, rows, table, key + kKeyTile)};
      CopySlab<kType, kWarp>(kv, rows, tiles, {key, values, 0}, Lane(), slab);
    }
    CommitCopies();  // also when empty: groups are counted
  }
};

// The products of the warp's strip, and the largest of each row for all warps.
template <DType kType>
__device__ __forceinline__ void ScoreStrip(const AttentionArgs& args, const StripPlace& place,
                                           bool seen, const std::byte* slab, float* all_largest,
                                           uint32_t* visible, float (&scales)[2],
                                           float (&scores)[4][4]) {
  float largest[2] = {MinusInfinity(), MinusInfinity()};
  if (seen) {
    const AttentionQueries& queries = *place.queries;
    const auto load = [&](int d, uint32_t(&a)[kMetParts<kType>][4]) { queries.Load(0, d, a); };
    AddKeys<kType, 1>(load, 0, slab, args.kv.head_dim, scores);
    ScaleScores<kType>(args.kv, slab, scores);
    CapScores(args.soft_cap, scales, scores);
    *visible = place.edge ? VisibleKeys<kType>(queries, place.row, place.key) : kAllVisible;
    LargestScores(*visible, scales, scores, largest);
  }
  if (Lane() % 4 != 0) return;
#pragma unroll
  for (int r = 0; r < 2; ++r) all_largest[WarpIndex() * 16 + Lane() / 4 + 8 * r] = largest[r];
}

// What each strip of a round does to the lane's rows.
template <int kWarps>
struct RoundMaxima {
  float max[kWarps][2];
  float corrections[kWarps][2];
};
template <int kWarps>
__device__ __forceinline__ RoundMaxima<kWarps> FollowMaxima(const float* largest,
                                                            const float (&before)[2]) {
  RoundMaxima<kWarps> round;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float max = before[r];
#pragma unroll
    for (int strip = 0; strip < kWarps; ++strip) {
      round.max[strip][r] = fmaxf(max, largest[strip * 16 + Lane() / 4 + 8 * r]);
      round.corrections[strip][r] = CorrectionOf(max, round.max[strip][r]);
      max = round.max[strip][r];
    }
  }
  return round;
}

// The warp's weights, for all warps.
template <DType kType>
__device__ __forceinline__ void StoreWeights(const RoundShared<kType>& shared,
                                             const RoundMaxima<kRoundWarps<kType>>& round,
                                             uint32_t visible, const float (&scales)[2],
                                             float (&scores)[4][4]) {
  const int warp = WarpIndex();
  float max[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    max[r] = round.max[0][r];
#pragma unroll
    for (int strip = 1; strip < kRoundWarps<kType>; ++strip) {  // registers have no index
      if (warp == strip) max[r] = round.max[strip][r];
    }
  }
  float sums[2];
  WeighScores(visible, scales, max, scores, sums);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    shared.weights[(warp * 4 + i) * kWarp + Lane()] = {scores[i][0], scores[i][1], scores[i][2],
                                                       scores[i][3]};
  }
  shared.sums[warp * kWarp + Lane()] = {sums[0], sums[1]};
}

// The strips of a round, one after the other: the warp's dimensions of their values.
template <DType kType, int kGroups>
__device__ __forceinline__ void AddRound(const AttentionArgs& args,
                                         const RoundShared<kType>& shared,
                                         const StripCopies<kType>& copies, const TileKeys& keys,
                                         const RoundMaxima<kRoundWarps<kType>>& round, int first,
                                         const std::byte* values, AttentionState<kGroups>* state) {
  constexpr int kWarps = kRoundWarps<kType>;
#pragma unroll
  for (int strip = 0; strip < kWarps; ++strip) {
    const int key = first + strip * kStripKeys;
    if (!copies.Sees(key)) continue;
    const float2 sums = shared.sums[strip * kWarp + Lane()];
    state->sum[0] = fmaf(state->sum[0], round.corrections[strip][0], sums.x);
    state->sum[1] = fmaf(state->sum[1], round.corrections[strip][1], sums.y);
    float weights[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 w = shared.weights[(strip * 4 + i) * kWarp + Lane()];
      weights[i][0] = w.x, weights[i][1] = w.y, weights[i][2] = w.z, weights[i][3] = w.w;
    }
    uint32_t a[2][kMetParts<kType>][4];
    float down[2];
    const StripPlace place = {&shared.queries, Lane() / 4, key, keys.IsEdge(key)};
    AddValues<kType, kWarps>(args.kv, place, weights, round.corrections[strip], WarpIndex(),
                             values + strip * RoundShared<kType>::kSlabBytes, 0, a, down, state);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) state->max[r] = round.max[kWarps - 1][r];
}

template <DType kType>
__global__ void __launch_bounds__(kRoundWarps<kType>* kWarp, 2)
    attention_few_kernel(const AttentionArgs args) {
  using Shared = RoundShared<kType>;
  constexpr int kWarps = kRoundWarps<kType>;
  constexpr int kRoundKeys = kWarps * kStripKeys;
  constexpr int kStages = kValueStages<kType>;
  static_assert(kSplitKeys % kRoundKeys == 0);
  const AttentionRows rows = RowsOfBlock(args, 16);
  if (rows.count == 0) return;
  const Shared shared = Shared::View(args.kv.head_dim);
  const int first_round = rows.first_key / kRoundKeys * kRoundKeys;
  const int strip_key = WarpIndex() * kStripKeys;  // of a round
  std::byte* own_keys = shared.keys + WarpIndex() * Shared::kSlabBytes;
  const auto own_values = [&](int stage) {
    return shared.values + (stage * kWarps + WarpIndex()) * Shared::kSlabBytes;
  };
  StripCopies<kType> copies = {args.kv, rows, {}};
  copies.table.Fetch(args.kv, rows, first_round);
  copies.Copy(first_round + strip_key, false, own_keys);
  copies.Copy(first_round + strip_key, true, own_values(0));
  LoadQueries<kType, kWarps>(args, rows, shared.queries);
  __syncthreads();  // the queries are there
  const TileKeys keys = KeysOfTile(shared.queries, 0, rows.count);
  AttentionState<kSlabGroups / kWarps> state;
  PartSums totals[2] = {};
  ClearState(&state);
  int stage = 0;
#pragma unroll 1
  for (int first = first_round; first < rows.end_key; first += kRoundKeys) {
    const int key = first + strip_key;
    const int next_key = key + kRoundKeys;
    const StripPlace place = {&shared.queries, Lane() / 4, key, keys.IsEdge(key)};
    float scores[4][4] = {};
    float scales[2] = {shared.queries.scales[place.row], shared.queries.scales[place.row + 8]};
    uint32_t visible = 0;
    WaitCopies<1>();
    __syncwarp();  // the warp's keys are there
    ScoreStrip<kType>(args, place, copies.Sees(key), own_keys, shared.largest, &visible, scales,
                      scores);
    __syncwarp();
    copies.Copy(next_key, false, own_keys);
    __syncthreads();  // the maxima are there, and nobody reads the values of the round before
    const int next_stage = kStages - 1 - stage;
    if (kStages > 1) copies.Copy(next_key, true, own_values(next_stage));
    const RoundMaxima<kWarps> round = FollowMaxima<kWarps>(shared.largest, state.max);
    StoreWeights<kType>(shared, round, visible, scales, scores);
    WaitCopies<kStages>();
    __syncthreads();  // weights and values are there
    AddRound<kType>(args, shared, copies, keys, round, first,
                    shared.values + stage * kWarps * Shared::kSlabBytes, &state);
    if (kStages == 1) {
      __syncthreads();  // the values have been read
      copies.Copy(next_key, true, own_values(0));
    }
    stage = next_stage;
    if ((first + kRoundKeys) % kSplitKeys == 0 || first + kRoundKeys >= rows.end_key) {
      FinishSplit<kType, kWarps>(args, shared.queries, Lane() / 4, WarpIndex(), first / kSplitKeys,
                                 totals, &state);
      ClearState(&state);
    }
  }
}

template <DType kType>
cudaError_t LaunchFewRows(const AttentionArgs& args, LaunchStream stream) {
  return Launch(attention_few_kernel<kType>,
                {GridOf(args, 16), dim3(kRoundWarps<kType> * kWarp),
                 RoundShared<kType>::Bytes(args.kv.head_dim)},
                stream, args);
}

}  // namespace llm
