// Attention over paged keys and values in f32: a block has a query token and up to four heads that
// share a kv head, a warp has one of them.
//
// Keys come in tiles of 16 (attention_tile.cuh), copied as they are stored, the next ones while
// these are added. A split of 512 keys gives a part: maximum, sum, weighted values; parts are
// merged in ascending order, by the block itself or, when there are few tokens, by a second kernel
// over parts of several blocks.
#include "kernels/cuda/attention_part.cuh"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
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
  float* queries;    // [kHeads, head_dim]
  std::byte* tiles;  // [stages, stage_tiles, TileBytes]
};

__device__ __forceinline__ Shared ViewShared(int head_dim) {
  float* memory = DynamicShared<float>();
  return {memory, reinterpret_cast<std::byte*>(memory + kHeads * head_dim)};
}

// Tiles that are copied together, and how many such stages there are: two, so that one is on its
// way while the other is read, unless the largest heads in f32 leave room for one.
struct Pipeline {
  int stages;
  int stage_tiles;
};

constexpr int kStageBytes = 24 * 1024;     // 2 stages: 4 blocks a multiprocessor of sm_90
constexpr int kMostTileBytes = 88 * 1024;  // a block of sm_89 has 99 KiB

__host__ __device__ __forceinline__ Pipeline PipelineOf(const KvArgs& kv) {
  const int tile_bytes = TileBytes(kv);
  const int fit = kStageBytes / tile_bytes;
  const int stage_tiles = fit < 1 ? 1 : fit < 4 ? fit : 4;
  return {2 * stage_tiles * tile_bytes <= kMostTileBytes ? 2 : 1, stage_tiles};
}

size_t SharedBytes(const KvArgs& kv) {
  const Pipeline pipeline = PipelineOf(kv);
  return static_cast<size_t>(kHeads * kv.head_dim) * sizeof(float) +
         static_cast<size_t>(pipeline.stages * pipeline.stage_tiles * TileBytes(kv));
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

// Copies tiles [first, first + count) of 16 keys of the sequence, also keys that the query does not
// see.
__device__ __forceinline__ void CopyTiles(const KvArgs& kv, const Query& query, int first,
                                          int count, std::byte* stage) {
  const int chunks = TileBytes(kv) / kChunkBytes;
  for (int i = static_cast<int>(threadIdx.x); i < count * chunks; i += kThreads) {
    const int key = (first + i / chunks) * kTile;
    const int block = query.blocks[key / kv.block_size];
    const std::byte* region =
        kv.base + (int64_t{block} * kv.num_kv_heads + query.kv_head) * kv.head_bytes;
    const int64_t from = ChunkOffset(kv, key % kv.block_size, i % chunks);
    CopyAsync16(stage + i * kChunkBytes, region + from, kChunkBytes);
  }
}

// A lane has a key and every second dimension of it.
template <DType kType>
__device__ __forceinline__ float Score(const AttentionArgs& args, const float* q,
                                       const Tile& tile) {
  const int key = Lane() % kTile;
  float sum = 0;
#pragma unroll 4
  for (int d = Lane() / kTile; d < args.kv.head_dim; d += kWarp / kTile) {
    sum = fmaf(q[d], KeyOf<kType>(args.kv, tile, key, d), sum);
  }
  sum += __shfl_xor_sync(kAllLanes, sum, kTile);
  const float score = sum * args.scale;
  return args.soft_cap > 0 ? args.soft_cap * tanhf(score / args.soft_cap) : score;
}

// Adds keys [begin, end) of the tile.
template <DType kType, int kDims>
__device__ __forceinline__ void AddTile(const AttentionArgs& args, const float* q, const Tile& tile,
                                        int begin, int end, AttentionPart<kDims>* part) {
  const float score = Score<kType>(args, q, tile);
  const int key = Lane() % kTile;
  const bool visible = key >= begin && key < end;
  const float max = fmaxf(part->max, WarpMax(visible ? score : MinusInfinity()));
  const float weight = visible ? expf(score - max) : 0.0f;
  const float correction = expf(part->max - max);
  part->sum = part->sum * correction + WarpSum(Lane() < kTile ? weight : 0.0f);
  part->max = max;
#pragma unroll
  for (int j = 0; j < kDims; ++j) part->values[j] *= correction;
  for (int k = begin; k < end; ++k) {
    const float w = __shfl_sync(kAllLanes, weight, k);
#pragma unroll
    for (int j = 0; j < kDims; ++j) {
      const int d = j * kWarp + Lane();
      if (d < args.kv.head_dim) {
        part->values[j] = fmaf(w, ValueOf<kType>(args.kv, tile, k, d), part->values[j]);
      }
    }
  }
}

// The keys [first, end) that lie in tiles [tile, tile + count).
template <DType kType, int kDims>
__device__ __forceinline__ void AddTiles(const AttentionArgs& args, const float* q,
                                         const std::byte* stage, int tile, int count, int first,
                                         int end, AttentionPart<kDims>* part) {
  for (int i = 0; i < count; ++i) {
    const int key = (tile + i) * kTile;
    AddTile<kType>(args, q, ViewTile(args.kv, stage + i * TileBytes(args.kv)), max(first - key, 0),
                   min(end - key, kTile), part);
  }
}

template <int kDims>
__device__ __forceinline__ void AddStage(const AttentionArgs& args, const float* q,
                                         const std::byte* stage, int tile, int count, int first,
                                         int end, AttentionPart<kDims>* part) {
  switch (args.kv.dtype) {
    case DType::kF32:
      return AddTiles<DType::kF32>(args, q, stage, tile, count, first, end, part);
    case DType::kF16:
      return AddTiles<DType::kF16>(args, q, stage, tile, count, first, end, part);
    case DType::kBF16:
      return AddTiles<DType::kBF16>(args, q, stage, tile, count, first, end, part);
    case DType::kF8E4M3:
      return AddTiles<DType::kF8E4M3>(args, q, stage, tile, count, first, end, part);
    case DType::kI4:
      return AddTiles<DType::kI4>(args, q, stage, tile, count, first, end, part);
    default:
      return AddTiles<DType::kI8>(args, q, stage, tile, count, first, end, part);
  }
}

template <int kDims>
__device__ __forceinline__ AttentionPart<kDims> AttendSplit(const AttentionArgs& args,
                                                            const Query& query,
                                                            const Shared& shared, int split) {
  AttentionPart<kDims> part;
  ClearPart(&part);
  const Pipeline pipeline = PipelineOf(args.kv);
  const int stage_bytes = pipeline.stage_tiles * TileBytes(args.kv);
  const int first = max(query.first_key, split * kSplit);
  const int end = min(query.end_key, (split + 1) * kSplit);
  const int end_tile = (end + kTile - 1) / kTile;
  const auto count = [&](int tile) { return min(pipeline.stage_tiles, end_tile - tile); };
  __syncthreads();  // all warps are through with the split before
  int tile = first / kTile;
  CopyTiles(args.kv, query, tile, count(tile), shared.tiles);
  for (int stage = 0; tile < end_tile; tile += pipeline.stage_tiles) {
    CommitCopies();
    WaitCopies<0>();
    __syncthreads();  // the stage has come in whole, the other one has been read
    const std::byte* tiles = shared.tiles + stage * stage_bytes;
    const int next = tile + pipeline.stage_tiles;
    if (pipeline.stages == 2) stage = 1 - stage;
    const bool ahead = pipeline.stages == 2 && next < end_tile;
    if (ahead) CopyTiles(args.kv, query, next, count(next), shared.tiles + stage * stage_bytes);
    if (query.head >= 0) {
      AddStage(args, shared.queries + WarpIndex() * args.kv.head_dim, tiles, tile, count(tile),
               first, end, &part);
    }
    if (ahead || next >= end_tile) continue;
    __syncthreads();  // the one stage there is has been read
    CopyTiles(args.kv, query, next, count(next), shared.tiles);
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
  const size_t shared_bytes = SharedBytes(args.kv);
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
