// Attention over paged keys and values in f32: a block has a query token and up to four heads that
// share a kv head, a warp has one of them.
//
// Keys come in tiles of 16 (kv_layout.h), decoded once into shared memory for the four warps. A
// split of 512 keys gives a part: maximum, sum, weighted values; parts are merged in ascending
// order, by the block itself or, when there are few tokens, by a second kernel over parts of
// several blocks.
#include "kernels/cuda/attention_part.cuh"
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kHeads = 4;  // warps of a block
constexpr int kThreads = kHeads * kWarp;
constexpr int kBlocks = 4;  // a multiprocessor: 128 registers a thread; left to itself ptxas spills
constexpr int kSplit = 512;
constexpr int kTile = kKeyTile;

// Views of the block's shared memory.
struct Shared {
  float* keys;          // [head_dim, kTile]
  float* values;        // [kTile, head_dim]
  float* queries;       // [kHeads, head_dim]
  float* key_scales;    // [kTile]
  float* value_scales;  // [kTile]
};

__device__ __forceinline__ Shared ViewShared(int head_dim) {
  float* memory = DynamicShared<float>();
  const int tile = kTile * head_dim;
  float* scales = memory + 2 * tile + kHeads * head_dim;
  return {memory, memory + tile, memory + 2 * tile, scales, scales + kTile};
}

size_t SharedBytes(int head_dim) {
  return static_cast<size_t>((2 * kTile + kHeads) * head_dim + 2 * kTile) * sizeof(float);
}

// What the block works on.
struct Query {
  const int32_t* blocks;  // of the sequence
  int first_key;
  int end_key;
  int kv_head;
  int head;  // of the warp; -1: none
};

__device__ __forceinline__ Query FindQuery(const AttentionArgs& args, int token, int unit) {
  int begin = 0;
  int end = args.num_sequences;
  while (end - begin > 1) {  // query_start[begin] <= token < query_start[end]
    const int middle = (begin + end) / 2;
    if (args.query_start[middle] <= token) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  // Sequences without queries begin where the next one does: the last of them owns the token.
  const int end_key = args.context_lens[begin] - (args.query_start[begin + 1] - token) + 1;
  const int first_key = args.window > 0 && end_key > args.window ? end_key - args.window : 0;
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int units = (group + kHeads - 1) / kHeads;  // of a kv head
  const int in_group = unit % units * kHeads + WarpIndex();
  const int kv_head = unit / units;
  return {args.block_table + int64_t{begin} * args.max_blocks, first_key, end_key, kv_head,
          in_group < group ? kv_head * group + in_group : -1};
}

__device__ __forceinline__ void LoadQuery(const AttentionArgs& args, const Query& query, int token,
                                          const Shared& shared) {
  if (query.head < 0) return;
  const int head_dim = args.kv.head_dim;
  const float* q = args.q + int64_t{token} * args.q_stride + int64_t{query.head} * head_dim;
  for (int d = Lane(); d < head_dim; d += kWarp) {
    shared.queries[WarpIndex() * head_dim + d] = q[d];
  }
  __syncwarp();
}

// The keys and values of a tile, also those that the query does not see.
__device__ __forceinline__ void LoadTile(const KvArgs& kv, const Query& query, int first_key,
                                         const Shared& shared) {
  const int head_dim = kv.head_dim;
  const int block = query.blocks[first_key / kv.block_size];
  const int offset = first_key % kv.block_size;
  const std::byte* region =
      kv.base + (int64_t{block} * kv.num_kv_heads + query.kv_head) * kv.head_bytes;
  const int64_t begin = int64_t{offset} * head_dim;  // of keys' tiles as of values
  for (int i = static_cast<int>(threadIdx.x); i < kTile * head_dim; i += kThreads) {
    shared.keys[i] = LoadElement(kv.dtype, region, begin + i);
    shared.values[i] = LoadElement(kv.dtype, region + kv.values_offset, begin + i);
  }
  if (static_cast<int>(threadIdx.x) >= kTile) return;
  const int i = offset + static_cast<int>(threadIdx.x);
  float key_scale = 1.0f;
  float value_scale = 1.0f;
  if (kv.key_scales_offset != 0) {
    key_scale = FromF16(reinterpret_cast<const uint16_t*>(region + kv.key_scales_offset)[i]);
    value_scale = FromF16(reinterpret_cast<const uint16_t*>(region + kv.value_scales_offset)[i]);
  }
  shared.key_scales[threadIdx.x] = key_scale;
  shared.value_scales[threadIdx.x] = value_scale;
}

// A lane has a key and every second dimension of it.
__device__ __forceinline__ float Score(const AttentionArgs& args, const Shared& shared) {
  const int head_dim = args.kv.head_dim;
  const float* q = shared.queries + WarpIndex() * head_dim;
  const int key = Lane() % kTile;
  float sum = 0;
  for (int d = Lane() / kTile; d < head_dim; d += kWarp / kTile) {
    sum = fmaf(q[d], shared.keys[d * kTile + key], sum);
  }
  sum += __shfl_xor_sync(kAllLanes, sum, kTile);
  const float score = sum * shared.key_scales[key] * args.scale;
  return args.soft_cap > 0 ? args.soft_cap * tanhf(score / args.soft_cap) : score;
}

// Adds keys [begin, end) of the tile in shared memory.
template <int kDims>
__device__ __forceinline__ void AddTile(const AttentionArgs& args, const Shared& shared, int begin,
                                        int end, AttentionPart<kDims>* part) {
  const float score = Score(args, shared);
  const int key = Lane() % kTile;
  const bool visible = key >= begin && key < end;
  const float max = fmaxf(part->max, WarpMax(visible ? score : MinusInfinity()));
  const float weight = visible ? expf(score - max) : 0.0f;
  const float correction = expf(part->max - max);
  part->sum = part->sum * correction + WarpSum(Lane() < kTile ? weight : 0.0f);
  part->max = max;
#pragma unroll
  for (int j = 0; j < kDims; ++j) part->values[j] *= correction;
  const int head_dim = args.kv.head_dim;
  const float scaled = weight * shared.value_scales[key];
  for (int k = begin; k < end; ++k) {
    const float w = __shfl_sync(kAllLanes, scaled, k);
#pragma unroll
    for (int j = 0; j < kDims; ++j) {
      const int d = j * kWarp + Lane();
      if (d < head_dim) part->values[j] = fmaf(w, shared.values[k * head_dim + d], part->values[j]);
    }
  }
}

template <int kDims>
__device__ __forceinline__ AttentionPart<kDims> AttendSplit(const AttentionArgs& args,
                                                            const Query& query,
                                                            const Shared& shared, int split) {
  AttentionPart<kDims> part;
  ClearPart(&part);
  const int first = max(query.first_key, split * kSplit);
  const int end = min(query.end_key, (split + 1) * kSplit);
  for (int tile = first / kTile * kTile; tile < end; tile += kTile) {
    __syncthreads();  // all warps are through with the tile before
    LoadTile(args.kv, query, tile, shared);
    __syncthreads();
    if (query.head >= 0) {
      AddTile(args, shared, max(first - tile, 0), min(end - tile, kTile), &part);
    }
  }
  return part;
}

// Splits of a query one after the other.
template <int kDims>
__global__ void __launch_bounds__(kThreads, kBlocks) attention_kernel(const AttentionArgs args) {
  const Shared shared = ViewShared(args.kv.head_dim);
  const int token = static_cast<int>(blockIdx.x);
  const Query query = FindQuery(args, token, static_cast<int>(blockIdx.y));
  LoadQuery(args, query, token, shared);
  AttentionPart<kDims> total;
  ClearPart(&total);
  for (int split = query.first_key / kSplit; split * kSplit < query.end_key; ++split) {
    MergePart(AttendSplit<kDims>(args, query, shared, split), &total);
  }
  if (query.head >= 0) StoreMerged(args, token, query.head, total);
}

// One split of a query, for the merge below. Blocks of splits that the query does not have end at
// once, and leave their part as it is.
template <int kDims>
__global__ void __launch_bounds__(kThreads, kBlocks)
    attention_split_kernel(const AttentionArgs args) {
  const Shared shared = ViewShared(args.kv.head_dim);
  const int token = static_cast<int>(blockIdx.x);
  const int split = static_cast<int>(blockIdx.z);
  const Query query = FindQuery(args, token, static_cast<int>(blockIdx.y));
  if (split * kSplit >= query.end_key || (split + 1) * kSplit <= query.first_key) return;
  LoadQuery(args, query, token, shared);
  const AttentionPart<kDims> part = AttendSplit<kDims>(args, query, shared, split);
  if (query.head >= 0) StorePart(args, token, query.head, split, part);
}

template <int kDims>
__global__ void __launch_bounds__(kThreads, kBlocks)
    attention_merge_kernel(const AttentionArgs args) {
  const int token = static_cast<int>(blockIdx.x);
  const Query query = FindQuery(args, token, static_cast<int>(blockIdx.y));
  if (query.head < 0) return;  // a whole warp
  AttentionPart<kDims> total;
  ClearPart(&total);
  for (int split = query.first_key / kSplit; split * kSplit < query.end_key; ++split) {
    MergePart(LoadPart<kDims>(args, token, query.head, split), &total);
  }
  StoreMerged(args, token, query.head, total);
}

template <int kDims>
cudaError_t LaunchDims(const AttentionArgs& args, cudaStream_t stream) {
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int units = args.kv.num_kv_heads * ((group + kHeads - 1) / kHeads);
  const dim3 grid(static_cast<unsigned>(args.num_tokens), static_cast<unsigned>(units));
  const size_t shared_bytes = SharedBytes(args.kv.head_dim);
  if (args.partials == nullptr) {
    return Launch(attention_kernel<kDims>, {grid, dim3(kThreads), shared_bytes}, stream, args);
  }
  const dim3 splits(grid.x, grid.y, static_cast<unsigned>(args.num_splits));
  const cudaError_t error =
      Launch(attention_split_kernel<kDims>, {splits, dim3(kThreads), shared_bytes}, stream, args);
  if (error != cudaSuccess) return error;
  return Launch(attention_merge_kernel<kDims>, {grid, dim3(kThreads)}, stream, args);
}

}  // namespace

// Sizes that models have: 64, 128, 256, and DeepSeek's 576.
cudaError_t LaunchAttention(const AttentionArgs& args, cudaStream_t stream) {
  const int dims = (args.kv.head_dim + kWarp - 1) / kWarp;
  if (dims <= 2) return LaunchDims<2>(args, stream);
  if (dims <= 4) return LaunchDims<4>(args, stream);
  if (dims <= 8) return LaunchDims<8>(args, stream);
  return LaunchDims<18>(args, stream);
}

}  // namespace llm
