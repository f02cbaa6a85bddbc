// Sixteen keys and values of a kv head in shared memory, as they are stored (kernels/kv_layout.h):
// keys [head_dim, 16], values [16, head_dim], then the scales of both, [scale_groups, 16] each.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/small_floats.cuh"

namespace llm {

constexpr int kChunkBytes = 16;  // of one copy: all parts of a tile are multiples of it

__host__ __device__ __forceinline__ int MatrixBytes(const KvArgs& kv) {
  return kKeyTile * kv.head_dim * static_cast<int>(DTypeBits(kv.dtype)) / 8;
}
__host__ __device__ __forceinline__ int ScalesBytes(const KvArgs& kv) {
  return kv.scale_groups * kKeyTile * static_cast<int>(sizeof(uint16_t));
}
__host__ __device__ __forceinline__ int TileBytes(const KvArgs& kv) {
  return 2 * (MatrixBytes(kv) + ScalesBytes(kv));
}

// Where chunk `i` of the tile that begins at `offset` of a block lies in the kv head's region.
__device__ __forceinline__ int64_t ChunkOffset(const KvArgs& kv, int offset, int i) {
  const int matrix = MatrixBytes(kv);
  const int64_t tile = offset / kKeyTile * int64_t{matrix};
  int byte = i * kChunkBytes;
  if (byte < matrix) return tile + byte;
  byte -= matrix;
  if (byte < matrix) return kv.values_offset + tile + byte;
  byte -= matrix;
  const int scales = ScalesBytes(kv);
  const int64_t first = byte < scales ? kv.key_scales_offset : kv.value_scales_offset;
  byte %= scales;
  constexpr int kGroupBytes = kKeyTile * static_cast<int>(sizeof(uint16_t));
  const int group = byte / kGroupBytes;
  const int element = group * kv.block_size + offset;
  return first + element * static_cast<int>(sizeof(uint16_t)) + byte % kGroupBytes;
}

struct Tile {
  const std::byte* keys;
  const std::byte* values;
  const uint16_t* key_scales;
  const uint16_t* value_scales;
};

__device__ __forceinline__ Tile ViewTile(const KvArgs& kv, const std::byte* memory) {
  const int matrix = MatrixBytes(kv);
  const std::byte* scales = memory + 2 * matrix;
  return {memory, memory + matrix, reinterpret_cast<const uint16_t*>(scales),
          reinterpret_cast<const uint16_t*>(scales + ScalesBytes(kv))};
}

template <DType kType>
__device__ __forceinline__ float ElementOf(const std::byte* matrix, int i) {
  if constexpr (kType == DType::kI4) {
    const int packed = reinterpret_cast<const uint8_t*>(matrix)[i / 2];
    return static_cast<float>((i % 2 != 0 ? packed >> 4 : packed & 0xf) - 8);
  } else {
    return LoadElement(kType, matrix, i);
  }
}

// Times its scale, exactly: at most 11 bits times 8.
template <DType kType>
__device__ __forceinline__ float Scaled(const KvArgs& kv, const uint16_t* scales, float constant,
                                        int key, int d, float x) {
  if constexpr (kType == DType::kF32 || kType == DType::kF16 || kType == DType::kBF16) return x;
  if (kv.scale_groups == 0) return x * constant;
  const int group = kType == DType::kI4 ? d / kKvGroup : 0;
  return x * FromF16(scales[group * kKeyTile + key]);
}

template <DType kType>
__device__ __forceinline__ float KeyOf(const KvArgs& kv, const Tile& tile, int key, int d) {
  // Of kI4, dimensions 2i and 2i + 1 of a key share a byte.
  const int i = kType == DType::kI4 ? (d / 2 * kKeyTile + key) * 2 + d % 2 : d * kKeyTile + key;
  return Scaled<kType>(kv, tile.key_scales, kv.key_scale, key, d, ElementOf<kType>(tile.keys, i));
}

template <DType kType>
__device__ __forceinline__ float ValueOf(const KvArgs& kv, const Tile& tile, int key, int d) {
  int i = key * kv.head_dim + d;
  if constexpr (kType == DType::kI4) {  // dimensions i and i + 16 of a group share a byte
    const int in_group = d % kKvGroup;
    i += in_group % (kKvGroup / 2) * 2 + in_group / (kKvGroup / 2) - in_group;
  }
  return Scaled<kType>(kv, tile.value_scales, kv.value_scale, key, d,
                       ElementOf<kType>(tile.values, i));
}

}  // namespace llm
