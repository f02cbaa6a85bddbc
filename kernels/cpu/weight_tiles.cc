// Sizes of tiles, and the way back from a tile to one row: with the generic instruction set's
// readers, whose lanes are plain arrays.
#include "kernels/cpu/weight_tiles.h"

#include <cstring>

#include "kernels/cpu/tile_formats.h"
#include "src/base/math.h"
#include "src/tensor/float_convert.h"

namespace llm::generic {
namespace {

struct ShapeParts {
  int64_t group_bytes;
  int64_t num_groups;
  int64_t scale_bytes;
};

template <typename Format>
ShapeParts QuantParts(int64_t cols) {
  return {Format::kGroupBytes, cols / kTileGroup, cols / Format::kCols * Format::kBytes};
}

ShapeParts GetParts(WeightFormat format, int64_t cols) {
  switch (format) {
    case WeightFormat::kF32:
      return {4 * kPackTileRows, cols, 0};
    case WeightFormat::kF16:
      return {2 * kPackTileRows, cols, 0};
    case WeightFormat::kBF16:
      return {2 * kPackTileRows, RoundUp<int64_t>(cols, 2), 0};
#define LLM_TILE_FORMAT(name, ...) \
  case WeightFormat::k##name:      \
    return QuantParts<TileFormat<__VA_ARGS__>>(cols);
#include "kernels/cpu/tile_formats.def"
#undef LLM_TILE_FORMAT
#define LLM_FLOAT_TILE_FORMAT(name, reader) \
  case WeightFormat::k##name:               \
    return QuantParts<reader>(cols);
#include "kernels/cpu/tile_floats.def"
#undef LLM_FLOAT_TILE_FORMAT
  }
  return {};
}

// Of lane `lane`, out of the kLanes that are unpacked together.
template <typename Format>
void DecodeQuants(const TileShape& shape, const uint8_t* tile, int lane, int64_t cols, float* out) {
  const int row = lane / kLanes * kLanes;
  const int i = lane - row;
  for (int64_t group = 0; group < cols / kTileGroup; ++group) {
    const uint8_t* quants = tile + group * shape.group_bytes;
    Bytes w[kGroupSteps];
    Format::Unpack(quants, row, w);
    const GroupScales scales = Format::Scales(quants, tile + shape.scales_offset, group, row);
    for (int k = 0; k < kTileGroup; ++k) {
      const int half = k * (kTileGroup / Format::kGroup) / kTileGroup;
      const float scale = scales.scale[half].v[i];
      const int quant = w[k / kStepCols].v[i * kStepCols + k % kStepCols];
      if constexpr (HasZeros<Format>) {
        *out++ = scale * (static_cast<float>(quant - Format::kZero) + scales.min[half].v[i]);
      } else if constexpr (Format::kHasMin) {
        *out++ = scale * static_cast<float>(quant) + scales.min[half].v[i];
      } else {
        *out++ = scale * static_cast<float>(quant - Format::kZero);
      }
    }
  }
}

// Tiles hold the elements of kCols columns together.
template <typename Element, float (*kConvert)(Element), int kCols = 1>
void DecodeFloats(const uint8_t* tile, int lane, int64_t cols, float* out) {
  for (int64_t k = 0; k < cols; ++k) {
    const int64_t index = (k / kCols * kPackTileRows + lane) * kCols + k % kCols;
    Element element;
    std::memcpy(&element, tile + index * static_cast<int64_t>(sizeof(Element)), sizeof(Element));
    out[k] = kConvert(element);
  }
}

template <typename Format>
void DecodeGroups(const TileShape& shape, const uint8_t* tile, int lane, int64_t cols, float* out) {
  const int row = lane / kLanes * kLanes;
  for (int64_t group = 0; group < cols / kTileGroup; ++group) {
    float columns[kTileGroup * kPackTileRows];
    Format::Decode(tile + group * shape.group_bytes, tile + shape.scales_offset, group, row,
                   columns);
    for (int k = 0; k < kTileGroup; ++k) *out++ = columns[k * kPackTileRows + lane - row];
  }
}

float Same(float x) { return x; }

void DecodeLane(WeightFormat format, const TileShape& shape, const uint8_t* tile, int lane,
                int64_t cols, float* out) {
  switch (format) {
    case WeightFormat::kF32:
      return DecodeFloats<float, Same>(tile, lane, cols, out);
    case WeightFormat::kF16:
      return DecodeFloats<uint16_t, F16ToF32>(tile, lane, cols, out);
    case WeightFormat::kBF16:
      return DecodeFloats<uint16_t, BF16ToF32, 2>(tile, lane, cols, out);
#define LLM_TILE_FORMAT(name, ...) \
  case WeightFormat::k##name:      \
    return DecodeQuants<TileFormat<__VA_ARGS__>>(shape, tile, lane, cols, out);
#include "kernels/cpu/tile_formats.def"
#undef LLM_TILE_FORMAT
#define LLM_FLOAT_TILE_FORMAT(name, reader) \
  case WeightFormat::k##name:               \
    return DecodeGroups<reader>(shape, tile, lane, cols, out);
#include "kernels/cpu/tile_floats.def"
#undef LLM_FLOAT_TILE_FORMAT
  }
}

}  // namespace
}  // namespace llm::generic

namespace llm {

TileShape GetTileShape(WeightFormat format, int64_t cols) {
  const generic::ShapeParts parts = generic::GetParts(format, cols);
  TileShape shape;
  shape.group_bytes = parts.group_bytes;
  shape.scales_offset = parts.group_bytes * parts.num_groups;
  shape.tile_bytes = RoundUp<int64_t>(shape.scales_offset + parts.scale_bytes, 64);
  return shape;
}

void DecodePackedRow(const PackedWeight& weight, int64_t row, float* out) {
  const TileShape shape = GetTileShape(weight.format, weight.cols);
  const uint8_t* tile =
      reinterpret_cast<const uint8_t*>(weight.data) + row / kPackTileRows * shape.tile_bytes;
  generic::DecodeLane(weight.format, shape, tile, static_cast<int>(row % kPackTileRows),
                      weight.cols, out);
}

}  // namespace llm
