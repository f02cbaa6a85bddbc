// From file blocks to tiles (weight_tiles.h). One implementation: the layout is the same for every
// instruction set.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/weight_tiles.h"
#include "kernels/quant/all_formats.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm::cpu {
namespace {

// One row (lane) of a tile that is being written.
struct Lane {
  uint8_t* quants;  // of the tile
  uint8_t* scales;  // of the tile
  int row;          // in the tile
};

void PutHalf(uint8_t* halves, int row, uint16_t half) {
  std::memcpy(halves + 2 * row, &half, sizeof(half));
}

// Quants u[32] of one group; `kBits` of them are kept.
template <int kBits>
void PutGroup(const Lane& lane, int64_t group, const uint8_t* u) {
  constexpr int kPlanes = kBits == 5 ? 1 : kBits == 6 ? 2 : 0;
  constexpr int kBytes =
      kBits == 8 ? kGroupSteps * kStepBytes : kNibbleBytes + kPlanes * kStepBytes;
  uint8_t* word = lane.quants + group * kBytes + lane.row * kStepCols;
  for (int j = 0; j < kStepCols; ++j) {
    uint8_t* byte = word + j;
    if constexpr (kBits == 8) {
      for (int s = 0; s < kGroupSteps; ++s) byte[s * kStepBytes] = u[s * kStepCols + j];
      continue;
    }
    int planes[2] = {0, 0};
    for (int s = 0; s < 4; ++s) {
      const int low = u[s * kStepCols + j];
      const int high = u[(s + 4) * kStepCols + j];
      byte[s * kStepBytes] = static_cast<uint8_t>((low & 0xf) | (high & 0xf) << 4);
      if constexpr (kBits == 5) planes[0] |= (low >> 4) << s | (high >> 4) << (s + 4);
      if constexpr (kBits == 6) {
        planes[0] |= (low >> 4) << (2 * s);
        planes[1] |= (high >> 4) << (2 * s);
      }
    }
    for (int p = 0; p < kPlanes; ++p)
      byte[kNibbleBytes + p * kStepBytes] = static_cast<uint8_t>(planes[p]);
  }
}

template <typename Block>
int QuantOf(const Block& block, int i) {
  if constexpr (requires { block.Quant(i); }) {
    return block.Quant(i);
  } else {
    return i < 16 ? block.quants[i] & 0xf : block.quants[i - 16] >> 4;
  }
}

// Blocks of 32: Q4_0, Q4_1, Q5_0, Q5_1.
template <int kBits, typename Block>
void PutSimple(const Lane& lane, int64_t index, const Block& block) {
  uint8_t u[kTileGroup];
  for (int i = 0; i < kTileGroup; ++i) u[i] = static_cast<uint8_t>(QuantOf(block, i));
  PutGroup<kBits>(lane, index, u);
  if constexpr (requires { block.min; }) {
    PutHalf(lane.scales + 2 * index * kHalfRow, lane.row, block.scale);
    PutHalf(lane.scales + (2 * index + 1) * kHalfRow, lane.row, block.min);
  } else {
    PutHalf(lane.scales + index * kHalfRow, lane.row, block.scale);
  }
}

void Put(const Lane& lane, int64_t index, const Q4_0& block) { PutSimple<4>(lane, index, block); }
void Put(const Lane& lane, int64_t index, const Q4_1& block) { PutSimple<4>(lane, index, block); }
void Put(const Lane& lane, int64_t index, const Q5_0& block) { PutSimple<5>(lane, index, block); }
void Put(const Lane& lane, int64_t index, const Q5_1& block) { PutSimple<5>(lane, index, block); }

void Put(const Lane& lane, int64_t index, const Q8_0& block) {
  uint8_t u[kTileGroup];
  for (int i = 0; i < kTileGroup; ++i) u[i] = static_cast<uint8_t>(block.quants[i] + 128);
  PutGroup<8>(lane, index, u);
  PutHalf(lane.scales + index * kHalfRow, lane.row, block.scale);
}

// The exponent is stored as that of half the scale; scales below 2^-126 become 0.
void Put(const Lane& lane, int64_t index, const MXFP4& block) {
  uint8_t u[kTileGroup];
  for (int i = 0; i < kTileGroup; ++i) u[i] = static_cast<uint8_t>(QuantOf(block, i));
  PutGroup<4>(lane, index, u);
  lane.scales[index * kPackTileRows + lane.row] =
      static_cast<uint8_t>(block.exponent < 2 ? 0 : block.exponent - 1);
}

// Q4_K and Q5_K.
template <int kBits, typename Block>
void PutSuper(const Lane& lane, int64_t index, const Block& block) {
  uint8_t* super = lane.scales + index * (2 * kHalfRow + kSuperGroups * 2 * kPackTileRows);
  PutHalf(super, lane.row, block.scale);
  PutHalf(super + kHalfRow, lane.row, block.min_scale);
  for (int g = 0; g < kSuperGroups; ++g) {
    uint8_t u[kTileGroup];
    for (int i = 0; i < kTileGroup; ++i) u[i] = static_cast<uint8_t>(block.Quant(g, i));
    PutGroup<kBits>(lane, index * kSuperGroups + g, u);
    uint8_t* sub = super + 2 * kHalfRow + g * 2 * kPackTileRows;
    sub[lane.row] = static_cast<uint8_t>(block.group_scales.Scale(g));
    sub[kPackTileRows + lane.row] = static_cast<uint8_t>(block.group_scales.Min(g));
  }
}

void Put(const Lane& lane, int64_t index, const Q4_K& block) { PutSuper<4>(lane, index, block); }
void Put(const Lane& lane, int64_t index, const Q5_K& block) { PutSuper<5>(lane, index, block); }

void Put(const Lane& lane, int64_t index, const Q6_K& block) {
  uint8_t* super = lane.scales + index * (kHalfRow + kSuperGroups * 2 * kPackTileRows);
  PutHalf(super, lane.row, block.scale);
  for (int g = 0; g < kSuperGroups; ++g) {
    uint8_t u[kTileGroup];
    for (int i = 0; i < kTileGroup; ++i)
      u[i] = static_cast<uint8_t>(block.Quant(g * kTileGroup + i));
    PutGroup<6>(lane, index * kSuperGroups + g, u);
  }
  for (int g = 0; g < 2 * kSuperGroups; ++g) {
    super[kHalfRow + g * kPackTileRows + lane.row] = static_cast<uint8_t>(block.group_scales[g]);
  }
}

// A float "block" is one element.
template <typename Block>
requires(Block::kBlockSize == 1) void Put(const Lane& lane, int64_t index, const Block& block) {
  std::memcpy(
      lane.quants + (index * kPackTileRows + lane.row) * static_cast<int64_t>(sizeof(Block)),
      &block, sizeof(Block));
}

void Put(const Lane& lane, int64_t index, const BF16& block) {
  const int64_t element = (index / 2 * kPackTileRows + lane.row) * 2 + index % 2;
  std::memcpy(lane.quants + element * static_cast<int64_t>(sizeof(block)), &block, sizeof(block));
}

template <typename Block>
void PackTile(const TileShape& shape, const uint8_t* source, int num_rows, int64_t num_blocks,
              uint8_t* tile) {
  for (int row = 0; row < num_rows; ++row) {
    const Lane lane = {tile, tile + shape.scales_offset, row};
    for (int64_t i = 0; i < num_blocks; ++i) {
      Block block;
      std::memcpy(&block, source, sizeof(Block));
      source += sizeof(Block);
      Put(lane, i, block);
    }
  }
}

using PackTileFn = void (*)(const TileShape&, const uint8_t*, int, int64_t, uint8_t*);

PackTileFn GetPackTile(WeightFormat format) {
  switch (format) {
#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) \
  case WeightFormat::k##name:                                               \
    return PackTile<name>;
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<size_t> PackedBytes(WeightFormat format, int64_t rows, int64_t cols) {
  const WeightFormatInfo* info = FindWeightFormat(static_cast<int32_t>(format));
  if (info == nullptr || rows < 0 || cols < 1 || cols % info->block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "packed_bytes: format ", static_cast<int32_t>(format), " has no [", rows, ", ", cols, "]"));
  }
  constexpr int64_t kMaxCols = INT64_MAX / 1024;  // keeps the sizes of one tile far from overflow
  const auto bytes = cols > kMaxCols
                         ? std::nullopt
                         : CheckedMul<int64_t>(GetTileShape(format, cols).tile_bytes,
                                               rows / kPackTileRows + (rows % kPackTileRows != 0));
  if (!bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("packed_bytes: [", rows, ", ", cols, "] is too large"));
  }
  return static_cast<size_t>(*bytes);
}

absl::Status PackRows(const PackRowsParams& params) {
  LLM_RETURN_IF_ERROR(CheckPackRows(params));
  const PackedWeight& weight = params.weight;
  const WeightFormatInfo& info = GetWeightFormat(weight.format);
  const TileShape shape = GetTileShape(weight.format, weight.cols);
  const PackTileFn pack_tile = GetPackTile(weight.format);
  const uint8_t* source = static_cast<const uint8_t*>(params.source);
  for (int64_t row = 0; row < params.num_rows; row += kPackTileRows) {
    const int num_rows = static_cast<int>(std::min<int64_t>(kPackTileRows, params.num_rows - row));
    uint8_t* tile = reinterpret_cast<uint8_t*>(params.destination) +
                    (params.row_begin + row) / kPackTileRows * shape.tile_bytes;
    std::memset(tile, 0, static_cast<size_t>(shape.tile_bytes));
    pack_tile(shape, source, num_rows, weight.cols / info.block_size, tile);
    source += num_rows * RowBytes(info, weight.cols);
  }
  return absl::OkStatus();
}

}  // namespace llm::cpu
