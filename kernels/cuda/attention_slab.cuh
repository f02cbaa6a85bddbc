// Slabs: up to 128 dimensions of 32 keys, or of their values, copied to shared memory as they are
// stored (kernels/kv_layout.h) but for the distances between rows.
//
// Lane 4 g + t of a warp reads quads of keys 4 g to 4 g + 3, of dimensions t, t + 4, ... of 16 (of
// kI4, 2 t and 2 t + 1, ...), and quads of values 4 g to 4 g + 3 of keys 8 t + m. All lanes that a
// memory cycle serves have banks of their own: the second tile of 16 keys lies 64 bytes further,
// value rows are an odd number of 32 bytes long, and keys 8 t + m of the four t follow each other.
#pragma once

#include "kernels/cuda/attention_quads.cuh"
#include "kernels/cuda/attention_rows.cuh"

namespace llm {

constexpr int kStripKeys = 32;
constexpr int kSlabDims = 128;
constexpr int kSlabGroups = kSlabDims / kKvGroup;
constexpr int kChunkBytes = 16;  // of one copy

template <DType kType>
struct Slab {
  static constexpr int kBits = static_cast<int>(DTypeBits(kType));
  static constexpr int kTileKeyBytes = kKeyTile * kBits / 8;  // a dimension of a tile's keys
  static constexpr int kRowBytes = kSlabDims * kBits / 8;     // of a value
  static constexpr int kKeyStride = kSlabDims * kTileKeyBytes + 64;
  static constexpr int kValueStride = kRowBytes + 32;
  static constexpr int kKeysBytes = kStripKeys / kKeyTile * kKeyStride;
  static constexpr int kValuesBytes = kStripKeys * kValueStride;
  static constexpr int kScalesOffset = kKeysBytes < kValuesBytes ? kValuesBytes : kKeysBytes;
  // [groups, kStripKeys] in f16
  static constexpr int kScaleGroups = kType == DType::kI4                              ? kSlabGroups
                                      : kType == DType::kF8E4M3 || kType == DType::kI8 ? 1
                                                                                       : 0;
  static constexpr int kScaleBytes = kStripKeys * static_cast<int>(sizeof(uint16_t));
  static constexpr int kBytes = kScalesOffset + kScaleGroups * kScaleBytes;
};

// Which slab of the sequence's kv head.
struct SlabPlace {
  int key;  // the strip's first
  bool values;
  int dim;  // the first
};

__device__ __forceinline__ int ValueRow(int key) { return key % 8 * 4 + key / 8; }

// The scales of the lane's keys 8 t to 8 t + 7.
template <DType kType>
__device__ __forceinline__ void LoadScales(const std::byte* slab, int group, float (&scales)[8]) {
  const std::byte* from = slab + Slab<kType>::kScalesOffset + group * Slab<kType>::kScaleBytes;
  const uint4 packed = *reinterpret_cast<const uint4*>(from + Lane() % 4 * 16);
  const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int m = 0; m < 8; ++m) {
    scales[m] = FromF16(static_cast<uint16_t>(words[m / 2] >> (16 * (m % 2)) & 0xffff));
  }
}

// Dimensions [dim, dim + 16) of the slab's keys, in the order that KeyPosition says.
template <DType kType>
__device__ __forceinline__ void LoadKeyQuads(const std::byte* slab, int dim,
                                             Quad<kType> (&quads)[4]) {
  using Layout = Slab<kType>;
  const int g = Lane() / 4;
  const int t = Lane() % 4;
  const std::byte* tile = slab + g / 4 * Layout::kKeyStride;
  if constexpr (kType == DType::kI4) {
#pragma unroll
    for (int m = 0; m < 4; m += 2) {  // a byte has two dimensions
      const std::byte* row = tile + (dim / 2 + 2 * m + t) * kKeyTile;
      const uint32_t codes = reinterpret_cast<const uint32_t*>(row)[g % 4];
      quads[m] = codes & 0x0f0f0f0fu;
      quads[m + 1] = codes >> 4 & 0x0f0f0f0fu;
    }
  } else {
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const std::byte* row = tile + (dim + 4 * m + t) * Layout::kTileKeyBytes;
      quads[m] = reinterpret_cast<const Quad<kType>*>(row)[g % 4];
      if constexpr (kType == DType::kI8) quads[m] ^= 0x80808080u;  // from 0 to 255
    }
  }
}

// Where dimension `d` of a query stands among the 16 that an mma adds up: lane t has positions 2 t,
// 2 t + 1, 2 t + 8 and 2 t + 9.
template <DType kType>
__device__ __forceinline__ int KeyPosition(int d) {
  if constexpr (kType == DType::kI4) return d;
  const int m = d % 16 / 4;
  return d - d % 16 + m / 2 * 8 + d % 4 * 2 + m % 2;
}

// Dimensions [32 group, 32 group + 32) of values 8 t + 4 step to 8 t + 4 step + 3; with `half`,
// only 16 of them are there, which stand for the others too.
template <DType kType>
__device__ __forceinline__ void LoadValueQuads(const std::byte* slab, int group, bool half,
                                               int step, Quad<kType> (&quads)[4]) {
  using Layout = Slab<kType>;
  const int g = half ? Lane() / 4 % 4 : Lane() / 4;
  const int t = Lane() % 4;
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    const std::byte* row = slab + ((4 * step + m) * 4 + t) * Layout::kValueStride +
                           group * kKvGroup * Layout::kBits / 8;
    if constexpr (kType == DType::kI4) {  // dimensions i and i + 16 of a group share a byte
      const uint32_t codes = reinterpret_cast<const uint32_t*>(row)[g % 4];
      quads[m] = codes >> (g / 4 * 4) & 0x0f0f0f0fu;
    } else {
      quads[m] = reinterpret_cast<const Quad<kType>*>(row)[g];
      if constexpr (kType == DType::kI8) quads[m] ^= 0x80808080u;
    }
  }
}

// A tile of 16 keys in a kv head's region; null when the block's rows see none of them.
struct TilePlace {
  const std::byte* region;
  int offset;  // of its first key in the block
};
__device__ __forceinline__ TilePlace FindTile(const KvArgs& kv, const AttentionRows& rows,
                                              int key) {
  if (key >= rows.end_key || key + kKeyTile <= rows.first_key) return {nullptr, 0};
  const int64_t block = rows.blocks[key / kv.block_size];
  return {kv.base + (block * kv.num_kv_heads + rows.kv_head) * kv.head_bytes, key % kv.block_size};
}

template <DType kType, int kThreads>
__device__ __forceinline__ void CopyKeys(const KvArgs& kv, const TilePlace (&tiles)[2], int dim,
                                         int dims, std::byte* to) {
  using Layout = Slab<kType>;
  const int chunks = dims * Layout::kTileKeyBytes / kChunkBytes;
#pragma unroll
  for (int tile = 0; tile < 2; ++tile) {
    const bool there = tiles[tile].region != nullptr;
    const int row = tiles[tile].offset / kKeyTile * kv.head_dim + dim;
    const std::byte* from =
        there ? tiles[tile].region + int64_t{row} * Layout::kTileKeyBytes : kv.base;
#pragma unroll 1
    for (int c = static_cast<int>(threadIdx.x); c < chunks; c += kThreads) {
      CopyAsync16(to + tile * Layout::kKeyStride + c * kChunkBytes,
                  there ? from + c * kChunkBytes : from, there ? kChunkBytes : 0);
    }
  }
}

// Values that none of the block's rows sees become zeros: what lies there may be NaN.
template <DType kType, int kThreads>
__device__ __forceinline__ void CopyValues(const KvArgs& kv, const AttentionRows& rows,
                                           const TilePlace (&tiles)[2], const SlabPlace& place,
                                           int dims, std::byte* to) {
  using Layout = Slab<kType>;
  constexpr int kRowChunks = Layout::kRowBytes / kChunkBytes;
  const int row_chunks = dims * Layout::kBits / 8 / kChunkBytes;
#pragma unroll 1
  for (int c = static_cast<int>(threadIdx.x); c < kStripKeys * kRowChunks; c += kThreads) {
    const int key = c / kRowChunks;
    const int chunk = c % kRowChunks;
    if (chunk >= row_chunks) continue;
    const TilePlace tile = key < kKeyTile ? tiles[0] : tiles[1];  // registers have no index
    const bool seen = place.key + key >= rows.first_key && place.key + key < rows.end_key;
    const int64_t element =
        int64_t{tile.offset + key % kKeyTile} * kv.head_dim + place.dim;  // bits are whole bytes
    const std::byte* from =
        seen ? tile.region + kv.values_offset + element * Layout::kBits / 8 + chunk * kChunkBytes
             : kv.base;
    CopyAsync16(to + ValueRow(key) * Layout::kValueStride + chunk * kChunkBytes, from,
                seen ? kChunkBytes : 0);
  }
}

template <DType kType>
__device__ __forceinline__ void CopyScales(const KvArgs& kv, const TilePlace (&tiles)[2],
                                           const SlabPlace& place, int dims, std::byte* to) {
  using Layout = Slab<kType>;
  constexpr int kChunks = Layout::kScaleBytes / kChunkBytes;
  const bool by_group = kType == DType::kI4;
  const int first = by_group ? place.dim / kKvGroup : 0;
  const int groups = by_group ? dims / kKvGroup : 1;
  const int c = static_cast<int>(threadIdx.x);  // at most 16 chunks
  if (c >= groups * kChunks) return;
  const int part = c % kChunks;
  const TilePlace tile = part < 2 ? tiles[0] : tiles[1];
  const bool there = tile.region != nullptr;
  const int64_t offset = place.values ? kv.value_scales_offset : kv.key_scales_offset;
  const int element = (first + c / kChunks) * kv.block_size + tile.offset;
  const std::byte* from =
      there ? tile.region + offset + element * 2 + part % 2 * kChunkBytes : kv.base;
  CopyAsync16(to + Layout::kScalesOffset + c * kChunkBytes, from, there ? kChunkBytes : 0);
}

template <DType kType, int kThreads>
__device__ __forceinline__ void CopySlab(const KvArgs& kv, const AttentionRows& rows,
                                         const SlabPlace& place, std::byte* to) {
  const TilePlace tiles[2] = {FindTile(kv, rows, place.key),
                              FindTile(kv, rows, place.key + kKeyTile)};
  const int dims = min(kv.head_dim - place.dim, kSlabDims);
  if (place.values) {
    CopyValues<kType, kThreads>(kv, rows, tiles, place, dims, to);
  } else {
    CopyKeys<kType, kThreads>(kv, tiles, place.dim, dims, to);
  }
  if constexpr (Slab<kType>::kScaleGroups > 0) {
    if (kv.scale_groups > 0) CopyScales<kType>(kv, tiles, place, dims, to);
  }
}

// The slabs of a range of keys, strip by strip, keys before values: a ring of stages, all but one
// on their way while one is read.
template <DType kType, int kThreads, int kStages>
struct SlabRing {
  static_assert(kStages >= 2);
  std::byte* stages;  // [kStages, Slab::kBytes]
  SlabPlace next;     // to be copied
  int end_key;
  int write;
  int read;

  __device__ __forceinline__ void CopyNext(const KvArgs& kv, const AttentionRows& rows) {
    if (next.key < end_key) {
      CopySlab<kType, kThreads>(kv, rows, next, stages + write * Slab<kType>::kBytes);
      write = write + 1 == kStages ? 0 : write + 1;
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
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) CopyNext(kv, rows);
  }

  // The next slab, for as long as none is asked for again.
  __device__ __forceinline__ const std::byte* Next(const KvArgs& kv, const AttentionRows& rows) {
    WaitCopies<kStages - 2>();
    __syncthreads();  // the slab has come in whole, and all warps are through with the one before
    CopyNext(kv, rows);
    const std::byte* slab = stages + read * Slab<kType>::kBytes;
    read = read + 1 == kStages ? 0 : read + 1;
    return slab;
  }
};

}  // namespace llm
