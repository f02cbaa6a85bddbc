// Slabs: up to 128 dimensions of 32 keys, or of their values, copied to shared memory as they are
// stored (kernels/kv_layout.h) but for the order of 16-byte pieces.
//
// ldmatrix reads eight rows of 16 bytes at a time and finds them in all the banks: of 16-bit keys
// every second four dimensions have their halves exchanged, value rows are an odd number of 16
// bytes long, and where elements are paired even values come before odd ones.
#pragma once

#include "kernels/cuda/attention_fragments.cuh"
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
  static constexpr int kKeyStride = kSlabDims * kTileKeyBytes;
  static constexpr int kValueStride = kRowBytes + kChunkBytes;
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

// Where a strip's value lies: the place among the 16 that an mma adds up, tile by tile.
template <DType kType>
__device__ __forceinline__ int ValueRow(int key) {
  if constexpr (!kPaired<kType>) return key;
  return key / kKeyTile * kKeyTile + key % 2 * 8 + key % kKeyTile / 2;
}

// The scales of the lane's keys: element 2 r + c of the results of matrix i has [4 (i / 2) + 2 c +
// i % 2].
template <DType kType>
__device__ __forceinline__ void LoadScales(const std::byte* slab, int group, float (&scales)[8]) {
  const std::byte* from = slab + Slab<kType>::kScalesOffset + group * Slab<kType>::kScaleBytes;
#pragma unroll
  for (int tile = 0; tile < 2; ++tile) {
    const uint2 packed = reinterpret_cast<const uint2*>(from)[tile * 4 + Lane() % 4];
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const uint32_t word = m < 2 ? packed.x : packed.y;
      scales[tile * 4 + m] = FromF16(static_cast<uint16_t>(word >> (16 * (m % 2)) & 0xffff));
    }
  }
}
__device__ __forceinline__ int ScaleIndex(int matrix, int c) {
  return matrix / 2 * 4 + c % 2 * 2 + matrix % 2;
}

// Dimensions [dim, dim + 16) of the slab's keys: four matrices of 8 keys, in the order of
// dimensions that KeyPosition says.
template <DType kType>
__device__ __forceinline__ void LoadKeyFragments(const std::byte* slab, int dim,
                                                 uint32_t (&b)[4][kOwnParts<kType>][2]) {
  using Layout = Slab<kType>;
  const int matrix = Lane() / 8;
  const int r = Lane() % 8;
  if constexpr (kType == DType::kF32) {
    const float* row =
        reinterpret_cast<const float*>(slab) + (dim + Lane() % 4 * 2) * kKeyTile + Lane() / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* at = row + i / 2 * (Layout::kKeyStride / 4) + i % 2 * 8;
      SplitF32(at[0], at[kKeyTile], b[i], 0);
      SplitF32(at[8 * kKeyTile], at[9 * kKeyTile], b[i], 1);
    }
  } else if constexpr (Layout::kBits == 16) {
    const std::byte* row = slab + (dim + matrix % 2 * 8 + r) * Layout::kTileKeyBytes +
                           (matrix / 2 ^ r / 4) * kChunkBytes;
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      uint32_t words[4];
      LoadTransposed4(words, row + tile * Layout::kKeyStride);
#pragma unroll
      for (int m = 0; m < 4; ++m) b[2 * tile + m / 2][0][m % 2] = words[m];
    }
  } else if constexpr (Layout::kBits == 8) {
    uint32_t words[4];
    LoadTransposed4(words, slab + matrix / 2 * Layout::kKeyStride +
                               (dim + matrix % 2 * 8 + r) * Layout::kTileKeyBytes);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        b[m / 2 * 2 + odd][0][m % 2] = BytesToF16<kType>(words[m], odd);
      }
    }
  } else {  // a byte has two dimensions
    uint32_t words[2];
    LoadTransposed2(words, slab + matrix % 2 * Layout::kKeyStride + (dim / 2 + r) * kKeyTile);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int m = 0; m < 2; ++m) b[i][0][m] = NibblesToF16(words[i / 2], i % 2 * 8 + m * 4);
    }
  }
}

// Where dimension `d` of a query stands among the 16 that an mma adds up.
template <DType kType>
__device__ __forceinline__ int KeyPosition(int d) {
  if constexpr (kType != DType::kI4) return d;
  return d - d % 16 + d % 16 / 4 * 2 + d % 2 * 8 + d % 4 / 2;
}

// Dimensions [32 group, 32 group + 32) of values 16 step to 16 step + 15: four matrices of 8
// dimensions. With `half`, only 16 dimensions are there, which stand for the others too.
template <DType kType>
__device__ __forceinline__ void LoadValueFragments(const std::byte* slab, int group, bool half,
                                                   int step,
                                                   uint32_t (&b)[4][kOwnParts<kType>][2]) {
  using Layout = Slab<kType>;
  const int matrix = Lane() / 8;
  const std::byte* row = slab + step * kKeyTile * Layout::kValueStride +
                         group * (kKvGroup * Layout::kBits / 8) +
                         (matrix % 2 * 8 + Lane() % 8) * Layout::kValueStride;
  if constexpr (kType == DType::kF32) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::byte* column = slab + (step * kKeyTile + Lane() % 4 * 2) * Layout::kValueStride +
                                ((group * 4 + (half ? i % 2 : i)) * 8 + Lane() / 4) * 4;
      const auto at = [&](int key) {
        return *reinterpret_cast<const float*>(column + key * Layout::kValueStride);
      };
      SplitF32(at(0), at(1), b[i], 0);
      SplitF32(at(8), at(9), b[i], 1);
    }
  } else if constexpr (Layout::kBits == 16) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      uint32_t words[4];
      LoadTransposed4(words, row + (half ? 0 : pair * 2 * kChunkBytes) + matrix / 2 * kChunkBytes);
#pragma unroll
      for (int m = 0; m < 4; ++m) b[2 * pair + m / 2][0][m % 2] = words[m];
    }
  } else if constexpr (Layout::kBits == 8) {
    uint32_t words[4];
    LoadTransposed4(words, row + (half ? 0 : matrix / 2 * kChunkBytes));
#pragma unroll
    for (int m = 0; m < 4; ++m) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        b[m / 2 * 2 + odd][0][m % 2] = BytesToF16<kType>(words[m], odd);
      }
    }
  } else {  // dimensions i and i + 16 of a group share a byte
    uint32_t words[2];
    LoadTransposed2(words, row);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int m = 0; m < 2; ++m) b[i][0][m] = NibblesToF16(words[m], i % 2 * 8 + i / 2 * 4);
    }
  }
}

}  // namespace llm
