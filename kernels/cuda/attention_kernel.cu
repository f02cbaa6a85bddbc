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
  float* keys;     // [head_dim, kTile]
  float* values;   // [kTile, head_dim]
  float* queries;  // [kHeads, head_dim]
};

__device__ __forceinline__ Shared ViewShared(int head_dim) {
  float* memory = DynamicShared<float>();
  const int tile = kTile * head_dim;
  return {memory, memory + tile, memory + 2 * tile};
}

size_t SharedBytes(int head_dim) {
  return static_cast<size_t>((2 * kTile + kHeads) * head_dim) * sizeof(float);
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

// Of dimension d of the key or value at `offset` in the block.
__device__ __forceinline__ float ScaleOf(const KvArgs& kv, const std::byte* region, int offset,
                                         int d, bool is_key) {
  if (kv.scale_groups == 0) return is_key ? kv.key_scale : kv.value_scale;
  const int group = d / (kv.head_dim / kv.scale_groups);
  const uint16_t* scales = reinterpret_cast<const uint16_t*>(
      region + (is_key ? kv.key_scales_offset : kv.value_scales_offset));
  return FromF16(scales[group * kv.block_size + offset]);
}

__device__ __forceinline__ float LoadNibble(const std::byte* matrix, int64_t byte, bool high) {
  const int packed = reinterpret_cast<const uint8_t*>(matrix)[byte];
  return static_cast<float>((high ? packed >> 4 : packed & 0xf) - 8);
}

// Keys and values times their scales, exactly: at most 11 bits times 8.
__device__ __forceinline__ float LoadKey(const KvArgs& kv, const std::byte* region, int offset,
                                         int d) {
  const int tile = offset / kTile;
  const int key = offset % kTile;
  const float x =
      kv.dtype == DType::kI4
          ? LoadNibble(region, (int64_t{tile} * (kv.head_dim / 2) + d / 2) * kTile + key,
                       d % 2 != 0)
          : LoadElement(kv.dtype, region, (int64_t{tile} * kv.head_dim + d) * kTile + key);
  return x * ScaleOf(kv, region, offset, d, true);
}

__device__ __forceinline__ float LoadValue(const KvArgs& kv, const std::byte* region, int offset,
                                           int d) {
  const std::byte* matrix = region + kv.values_offset;
  const int64_t first = int64_t{offset} * kv.head_dim;
  const int in_group = d % kKvGroup;
  const int64_t byte = (first + d - in_group) / 2 + in_group % (kKvGroup / 2);
  const float x = kv.dtype == DType::kI4 ? LoadNibble(matrix, byte, in_group >= kKvGroup / 2)
                                         : LoadElement(kv.dtype, matrix, first + d);
  return x * ScaleOf(kv, region, offset, d, false);
}

// The keys and values of a tile, also those that the query does not see.
__device__ __forceinline__ void LoadTile(const KvArgs& kv, const Query& query, int first_key,
                                         const Shared& shared) {
  const int head_dim = kv.head_dim;
  const int block = query.blocks[first_key / kv.block_size];
  const int offset = first_key % kv.block_size;
  const std::byte* region =
      kv.base + (int64_t{block} * kv.num_kv_heads + query.kv_head) * kv.head_bytes;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * head_dim; i += kThreads) {
    shared.keys[i] = LoadKey(kv, region, offset + i % kTile, i / kTile);
    shared.values[i] = LoadValue(kv, region, offset + i / head_dim, i % head_dim);
  }
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
  const float score = sum * args.scale;
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
  for (int k = begin; k < end; ++k) {
    const float w = __shfl_sync(kAllLanes, weight, k);
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
