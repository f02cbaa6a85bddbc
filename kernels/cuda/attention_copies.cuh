// Copies of slabs to shared memory by cp.async, and the ring of those on their way.
#pragma once

#include "kernels/cuda/attention_slab.cuh"

namespace llm {

// A split's 32 tiles of 16 keys: lane i has the block of tile i, so that a copy waits for no table.
struct TileTable {
  static_assert(kSplitKeys == kWarp * kKeyTile);
  int block = 0;

  // Of the split of `key`.
  __device__ __forceinline__ void Fetch(const KvArgs& kv, const AttentionRows& rows, int key) {
    const int first = key / kSplitKeys * kSplitKeys + Lane() * kKeyTile;
    const bool there = first < rows.end_key && first + kKeyTile > rows.first_key;
    block = there ? rows.blocks[first / kv.block_size] : 0;
  }
};

// A tile of 16 keys in a kv head's region; null when the block's rows see none of them.
struct TilePlace {
  const std::byte* region;
  int offset;  // of its first key in the block
};
__device__ __forceinline__ TilePlace FindTile(const KvArgs& kv, const AttentionRows& rows,
                                              const TileTable& table, int key) {
  const int64_t block = __shfl_sync(kAllLanes, table.block, key % kSplitKeys / kKeyTile);
  if (key >= rows.end_key || key + kKeyTile <= rows.first_key) return {nullptr, 0};
  return {kv.base + (block * kv.num_kv_heads + rows.kv_head) * kv.head_bytes,
          key & (kv.block_size - 1)};
}

// Every kThreads-th piece from `thread` on. All counts are powers of two: of a thread's pieces all
// but the first lie at distances that the compiler knows.
template <DType kType, int kThreads>
__device__ __forceinline__ void CopyKeys(const KvArgs& kv, const TilePlace (&tiles)[2], int thread,
                                         int dim, int dims, std::byte* to) {
  using Layout = Slab<kType>;
  constexpr int kChunks = Layout::kKeyStride / kChunkBytes;  // of a tile
  constexpr int kSpread = kThreads < kChunks ? kThreads : kChunks;
  const int first = thread & (kSpread - 1);
  const int first_tile = kThreads > kChunks ? thread / kChunks : 0;
  const int chunks = dims * Layout::kTileKeyBytes / kChunkBytes;
  const int swapped = Layout::kBits == 16 ? first ^ (first >> 3 & 1) : first;
#pragma unroll
  for (int i = 0; i < 2 * kChunks; i += kThreads) {
    const int index = first_tile + i / kChunks;
    const int c = i % kChunks;
    if (index > 1 || first + c >= chunks) continue;
    const TilePlace tile = index == 0 ? tiles[0] : tiles[1];  // registers have no index
    const bool there = tile.region != nullptr;
    const int row = tile.offset / kKeyTile * kv.head_dim + dim;
    const std::byte* from = (there ? tile.region + int64_t{row} * Layout::kTileKeyBytes : kv.base) +
                            first * kChunkBytes;
    CopyAsync16(to + index * Layout::kKeyStride + (swapped + c) * kChunkBytes,
                from + c * kChunkBytes, there ? kChunkBytes : 0);
  }
}

// Values that none of the block's rows sees become zeros: what lies there may be NaN.
template <DType kType, int kThreads>
__device__ __forceinline__ void CopyValues(const KvArgs& kv, const AttentionRows& rows,
                                           const TilePlace (&tiles)[2], int thread,
                                           const SlabPlace& place, int dims, std::byte* to) {
  using Layout = Slab<kType>;
  constexpr int kRowChunks = Layout::kRowBytes / kChunkBytes;
  constexpr int kPass = kThreads / kRowChunks;  // keys at a time
  const int chunk = thread & (kRowChunks - 1);
  const int first = thread / kRowChunks;
  if (chunk * kChunkBytes >= dims * Layout::kBits / 8) return;
  const int row_bytes = kv.head_dim * Layout::kBits / 8;  // bits are whole bytes
  const int64_t offset = kv.values_offset + place.dim * Layout::kBits / 8 + chunk * kChunkBytes;
  to += ValueRow<kType>(first) * Layout::kValueStride + chunk * kChunkBytes;
#pragma unroll
  for (int i = 0; i < kStripKeys; i += kPass) {
    const int key = first + i;
    if (kPass > kStripKeys && key >= kStripKeys) continue;
    const int in_tile = kPass > kKeyTile ? first % kKeyTile : first + i % kKeyTile;
    const TilePlace tile = (kPass > kKeyTile ? key : i) < kKeyTile ? tiles[0] : tiles[1];
    const bool seen = place.key + key >= rows.first_key && place.key + key < rows.end_key;
    const std::byte* from =
        seen ? tile.region + offset + (tile.offset + in_tile) * row_bytes : kv.base;
    CopyAsync16(to + ValueRow<kType>(i) * Layout::kValueStride, from, seen ? kChunkBytes : 0);
  }
}

template <DType kType>
__device__ __forceinline__ void CopyScales(const KvArgs& kv, const TilePlace (&tiles)[2],
                                           int thread, const SlabPlace& place, int dims,
                                           std::byte* to) {
  using Layout = Slab<kType>;
  constexpr int kChunks = Layout::kScaleBytes / kChunkBytes;
  const bool by_group = kType == DType::kI4;
  const int first = by_group ? place.dim / kKvGroup : 0;
  const int groups = by_group ? dims / kKvGroup : 1;
  if (thread >= groups * kChunks) return;  // at most 16 chunks
  const int part = thread % kChunks;
  const TilePlace tile = part < 2 ? tiles[0] : tiles[1];
  const bool there = tile.region != nullptr;
  const int64_t offset = place.values ? kv.value_scales_offset : kv.key_scales_offset;
  const int element = (first + thread / kChunks) * kv.block_size + tile.offset;
  const std::byte* from =
      there ? tile.region + offset + element * 2 + part % 2 * kChunkBytes : kv.base;
  CopyAsync16(to + Layout::kScalesOffset + thread * kChunkBytes, from, there ? kChunkBytes : 0);
}

template <DType kType, int kThreads>
__device__ __forceinline__ void CopySlabOf(const KvArgs& kv, const AttentionRows& rows,
                                           const TilePlace (&tiles)[2], const SlabPlace& place,
                                           int thread, std::byte* to) {
  const int dims = min(kv.head_dim - place.dim, kSlabDims);
  if (place.values) {
    CopyValues<kType, kThreads>(kv, rows, tiles, thread, place, dims, to);
  } else {
    CopyKeys<kType, kThreads>(kv, tiles, thread, place.dim, dims, to);
  }
  if constexpr (Slab<kType>::kScaleGroups > 0) {
    if (kv.scale_groups > 0) CopyScales<kType>(kv, tiles, thread, place, dims, to);
  }
}

// By `kThreads` threads, whole warps of them.
template <DType kType, int kThreads>
__device__ __forceinline__ void CopySlab(const KvArgs& kv, const AttentionRows& rows,
                                         const TileTable& table, const SlabPlace& place, int thread,
                                         std::byte* to) {
  const TilePlace tiles[2] = {FindTile(kv, rows, table, place.key),
                              FindTile(kv, rows, table, place.key + kKeyTile)};
  CopySlabOf<kType, kThreads>(kv, rows, tiles, place, thread, to);
}

// The slabs of a range of keys, strip by strip, keys before values: a ring of stages, all but one
// on their way while one is read. A stage has kSlabs slabs: one, or all of a strip.
template <DType kType, int kThreads, int kStages, int kSlabs>
struct SlabRing {
  static_assert(kStages >= 2 && kSlabs <= 2);
  static constexpr int kStageBytes = kSlabs * Slab<kType>::kBytes;
  std::byte* stages;  // [kStages, kSlabs, Slab::kBytes]
  int end_key;
  SlabPlace next;  // to be copied, of one slab a stage
  int read;
  TileTable table;

  // `key`: the strip of the stage, where it has all slabs.
  __device__ __forceinline__ void CopyNext(const KvArgs& kv, const AttentionRows& rows, int key,
                                           int stage) {
    if constexpr (kSlabs == 1) key = next.key;
    if (key < end_key) {
      std::byte* to = stages + stage * kStageBytes;
      const int thread = static_cast<int>(threadIdx.x);
      const bool first = kSlabs == 2 || (!next.values && next.dim == 0);
      if (first && key % kSplitKeys == 0) table.Fetch(kv, rows, key);
      const TilePlace tiles[2] = {FindTile(kv, rows, table, key),
                                  FindTile(kv, rows, table, key + kKeyTile)};
      if constexpr (kSlabs == 2) {
        CopySlabOf<kType, kThreads>(kv, rows, tiles, {key, false, 0}, thread, to);
        CopySlabOf<kType, kThreads>(kv, rows, tiles, {key, true, 0}, thread,
                                    to + Slab<kType>::kBytes);
      } else {
        CopySlabOf<kType, kThreads>(kv, rows, tiles, next, thread, to);
        NextPlace(kv);
      }
    }
    CommitCopies();  // also when empty: groups are counted
  }

  __device__ __forceinline__ void NextPlace(const KvArgs& kv) {
    next.dim += kSlabDims;
    if (next.dim < kv.head_dim) return;
    next.dim = 0;
    if (next.values) next.key += kStripKeys;
    next.values = !next.values;
  }

  __device__ __forceinline__ void Start(const KvArgs& kv, const AttentionRows& rows, int key) {
    table.Fetch(kv, rows, key);
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) CopyNext(kv, rows, key + i * kStripKeys, i);
  }

  // The next stage, that of the strip at `key`, for as long as none is asked for again.
  __device__ __forceinline__ const std::byte* Next(const KvArgs& kv, const AttentionRows& rows,
                                                   int key) {
    WaitCopies<kStages - 2>();
    __syncthreads();  // it has come in whole, and all warps are through with the one before
    CopyNext(kv, rows, key + (kStages - 1) * kStripKeys, read == 0 ? kStages - 1 : read - 1);
    const std::byte* stage = stages + read * kStageBytes;
    read = read + 1 == kStages ? 0 : read + 1;
    return stage;
  }
};

}  // namespace llm
