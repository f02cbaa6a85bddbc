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
  const int tile = (key & (kSplitKeys - 1)) >> 4;
  static_assert(kKeyTile == 1 << 4);
  const int64_t block = __shfl_sync(kAllLanes, table.block, tile);
  if (key >= rows.end_key || key + kKeyTile <= rows.first_key) return {nullptr, 0};
  return {kv.base + (block * kv.num_kv_heads + rows.kv_head) * kv.head_bytes,
          key & (kv.block_size - 1)};
}

// Every kThreads-th piece from `thread` on. All counts are powers of two: of a thread's pieces all
// but the first lie at distances that the compiler knows. kWhole: of 128 dimensions of two tiles.
template <DType kType, int kThreads, bool kWhole>
__device__ __forceinline__ void CopyKeysOf(const KvArgs& kv, const TilePlace (&tiles)[2],
                                           unsigned thread, int dim, int dims, std::byte* to) {
  using Layout = Slab<kType>;
  constexpr int kChunks = Layout::kKeyStride / kChunkBytes;  // of a tile
  constexpr int kSpread = kThreads < kChunks ? kThreads : kChunks;
  const int first = static_cast<int>(thread % kSpread);
  const int first_tile = kThreads > kChunks ? static_cast<int>(thread / kChunks) : 0;
  const int chunks = dims * Layout::kTileKeyBytes / kChunkBytes;
  const std::byte* from[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = (tiles[i].offset >> 4) * kv.head_dim + dim;
    const bool there = kWhole || tiles[i].region != nullptr;
    from[i] = there ? tiles[i].region + int64_t{row} * Layout::kTileKeyBytes : kv.base;
    from[i] += first * kChunkBytes;
  }
  to += (Layout::kBits == 16 ? first ^ (first >> 3 & 1) : first) * kChunkBytes;
#pragma unroll
  for (int i = 0; i < 2 * kChunks; i += kThreads) {
    const int index = first_tile + i / kChunks;
    const int c = i % kChunks;
    if (kThreads > 2 * kChunks && index > 1) continue;
    if (!kWhole && first + c >= chunks) continue;
    const bool there = kWhole || (index == 0 ? tiles[0] : tiles[1]).region != nullptr;
    CopyAsync16(to + index * Layout::kKeyStride + c * kChunkBytes,
                (index == 0 ? from[0] : from[1]) + c * kChunkBytes, there ? kChunkBytes : 0);
  }
}

// Values that none of the block's rows sees become zeros: what lies there may be NaN. kWhole: of
// 128 dimensions, all seen.
template <DType kType, int kThreads, bool kWhole>
__device__ __forceinline__ void CopyValuesOf(const KvArgs& kv, const AttentionRows& rows,
                                             const TilePlace (&tiles)[2], unsigned thread,
                                             const SlabPlace& place, int dims, std::byte* to) {
  using Layout = Slab<kType>;
  constexpr int kRowChunks = Layout::kRowBytes / kChunkBytes;
  constexpr int kPass = kThreads / kRowChunks;  // keys at a time
  const int chunk = static_cast<int>(thread % kRowChunks);
  const int first = static_cast<int>(thread / kRowChunks);
  if (!kWhole && chunk * kChunkBytes >= dims * Layout::kBits / 8) return;
  const int row_bytes = kv.head_dim * Layout::kBits / 8;  // bits are whole bytes
  const int64_t offset = kv.values_offset + place.dim * Layout::kBits / 8 + chunk * kChunkBytes;
  const int in_tile = kPass > kKeyTile ? first & (kKeyTile - 1) : first;
  const std::byte* from[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::byte* region = kWhole || tiles[i].region != nullptr ? tiles[i].region : kv.base;
    from[i] = region + offset + (tiles[i].offset + in_tile) * row_bytes;
  }
  to += ValueRow<kType>(first) * Layout::kValueStride + chunk * kChunkBytes;
#pragma unroll
  for (int i = 0; i < kStripKeys; i += kPass) {
    const int key = first + i;
    if (kPass > kStripKeys && key >= kStripKeys) continue;
    const std::byte* tile = (kPass > kKeyTile ? key : i) < kKeyTile ? from[0] : from[1];
    const bool seen =
        kWhole || (place.key + key >= rows.first_key && place.key + key < rows.end_key);
    CopyAsync16(to + ValueRow<kType>(i) * Layout::kValueStride,
                seen ? tile + i % kKeyTile * row_bytes : kv.base, seen ? kChunkBytes : 0);
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

// A slab of the strip that has these tiles, by `kThreads` threads.
template <DType kType, int kThreads>
__device__ __forceinline__ void CopySlab(const KvArgs& kv, const AttentionRows& rows,
                                         const TilePlace (&tiles)[2], const SlabPlace& place,
                                         int thread, std::byte* to) {
  const auto t = static_cast<unsigned>(thread);
  const int dims = min(kv.head_dim - place.dim, kSlabDims);
  const bool whole =
      dims == kSlabDims && place.key >= rows.first_key && place.key + kStripKeys <= rows.end_key;
  if (place.values) {
    if (whole) {
      CopyValuesOf<kType, kThreads, true>(kv, rows, tiles, t, place, dims, to);
    } else {
      CopyValuesOf<kType, kThreads, false>(kv, rows, tiles, t, place, dims, to);
    }
  } else if (whole) {
    CopyKeysOf<kType, kThreads, true>(kv, tiles, t, place.dim, dims, to);
  } else {
    CopyKeysOf<kType, kThreads, false>(kv, tiles, t, place.dim, dims, to);
  }
  if constexpr (Slab<kType>::kScaleGroups > 0) {
    if (kv.scale_groups > 0) CopyScales<kType>(kv, tiles, thread, place, dims, to);
  }
}

// A ring of stages, all but one on their way while one is read: the strips of a range of keys, of
// heads of one slab.
template <DType kType, int kThreads, int kStages>
struct StripRing {
  static_assert(kStages >= 2);
  static constexpr int kStageBytes = 2 * Slab<kType>::kBytes;
  std::byte* stages;  // [kStages, kStageBytes]: keys, then values
  int read;
  TileTable table;

  __device__ __forceinline__ void CopyTo(const KvArgs& kv, const AttentionRows& rows, int key,
                                         int stage) {
    if (key < rows.end_key) {
      std::byte* to = stages + stage * kStageBytes;
      if ((key & (kSplitKeys - 1)) == 0) table.Fetch(kv, rows, key);
      const TilePlace tiles[2] = {FindTile(kv, rows, table, key),
                                  FindTile(kv, rows, table, key + kKeyTile)};
      const int thread = static_cast<int>(threadIdx.x);
      CopySlab<kType, kThreads>(kv, rows, tiles, {key, false, 0}, thread, to);
      CopySlab<kType, kThreads>(kv, rows, tiles, {key, true, 0}, thread, to + Slab<kType>::kBytes);
    }
    CommitCopies();  // also when empty: groups are counted
  }

  __device__ __forceinline__ void Start(const KvArgs& kv, const AttentionRows& rows, int key) {
    table.Fetch(kv, rows, key);
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) CopyTo(kv, rows, key + i * kStripKeys, i);
  }

  // The stage of the strip at `key`, for as long as none is asked for again.
  __device__ __forceinline__ const std::byte* Next(const KvArgs& kv, const AttentionRows& rows,
                                                   int key) {
    WaitCopies<kStages - 2>();
    __syncthreads();  // it has come in whole, and all warps are through with the one before
    CopyTo(kv, rows, key + (kStages - 1) * kStripKeys, read == 0 ? kStages - 1 : read - 1);
    const std::byte* stage = stages + read * kStageBytes;
    read = read + 1 == kStages ? 0 : read + 1;
    return stage;
  }
};

// The same of slabs, strip by strip, keys before values.
template <DType kType, int kThreads, int kStages>
struct SlabRing {
  static_assert(kStages >= 2);
  std::byte* stages;  // [kStages, Slab::kBytes]
  SlabPlace next;     // to be copied
  int read;
  TileTable table;

  __device__ __forceinline__ void CopyNext(const KvArgs& kv, const AttentionRows& rows, int stage) {
    if (next.key < rows.end_key) {
      const bool first = !next.values && next.dim == 0;  // of the strip
      if (first && (next.key & (kSplitKeys - 1)) == 0) table.Fetch(kv, rows, next.key);
      const TilePlace tiles[2] = {FindTile(kv, rows, table, next.key),
                                  FindTile(kv, rows, table, next.key + kKeyTile)};
      CopySlab<kType, kThreads>(kv, rows, tiles, next, static_cast<int>(threadIdx.x),
                                stages + stage * Slab<kType>::kBytes);
      next.dim += kSlabDims;
      if (next.dim >= kv.head_dim) {
        next.dim = 0;
        if (next.values) next.key += kStripKeys;
        next.values = !next.values;
      }
    }
    CommitCopies();  // also when empty: groups are counted
  }

  __device__ __forceinline__ void Start(const KvArgs& kv, const AttentionRows& rows) {
    table.Fetch(kv, rows, next.key);
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) CopyNext(kv, rows, i);
  }

  // The next slab, for as long as none is asked for again.
  __device__ __forceinline__ const std::byte* Next(const KvArgs& kv, const AttentionRows& rows) {
    WaitCopies<kStages - 2>();
    __syncthreads();  // it has come in whole, and all warps are through with the one before
    CopyNext(kv, rows, read == 0 ? kStages - 1 : read - 1);
    const std::byte* slab = stages + read * Slab<kType>::kBytes;
    read = read + 1 == kStages ? 0 : read + 1;
    return slab;
  }
};

}  // namespace llm
