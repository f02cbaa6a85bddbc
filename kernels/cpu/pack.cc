// From file blocks to tiles (weight_tiles.h). One implementation: the layout is the same for every
// instruction set.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/put_blocks.h"
#include "kernels/cpu/put_grids.h"
#include "kernels/cpu/weight_tiles.h"
#include "kernels/quant/all_formats.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm::cpu {
namespace {

template <typename Block>
void PackTile(const TileShape& shape, const uint8_t* source, int num_rows, int64_t num_blocks,
              uint8_t* tile) {
  for (int row = 0; row < num_rows; ++row) {
    const TileLane lane = {tile, tile + shape.scales_offset, row};
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
