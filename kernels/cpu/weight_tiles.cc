// Sizes of tiles, and the way back from a tile to one row.
#include "kernels/cpu/weight_tiles.h"

#include <cstring>

#include "kernels/quant/mxfp4.h"
#include "src/base/math.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

constexpr int GroupBytes(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ4_K:
    case WeightFormat::kMXFP4:
      return kNibbleBytes;
    case WeightFormat::kQ5_0:
    case WeightFormat::kQ5_1:
    case WeightFormat::kQ5_K:
      return kNibbleBytes + kStepBytes;
    case WeightFormat::kQ6_K:
      return kNibbleBytes + 2 * kStepBytes;
    case WeightFormat::kQ8_0:
      return kGroupSteps * kStepBytes;
    case WeightFormat::kF32:
      return 4 * kPackTileRows;
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return 2 * kPackTileRows;
  }
  return 0;
}

constexpr int64_t ScaleBytes(WeightFormat format, int64_t cols) {
  switch (format) {
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ5_0:
    case WeightFormat::kQ8_0:
      return cols / kTileGroup * kHalfRow;
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
      return cols / kTileGroup * 2 * kHalfRow;
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return cols / kSuperBlock * (2 * kHalfRow + kSuperGroups * 2 * kPackTileRows);
    case WeightFormat::kQ6_K:
      return cols / kSuperBlock * (kHalfRow + kSuperGroups * 2 * kPackTileRows);
    case WeightFormat::kMXFP4:
      return cols / kTileGroup * kPackTileRows;
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return 0;
  }
  return 0;
}

float PowerOfTwoAt(const uint8_t* p) {
  const uint32_t bits = uint32_t{*p} << 23;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float HalfAt(const uint8_t* p) {
  uint16_t half;
  std::memcpy(&half, p, sizeof(half));
  return F16ToF32(half);
}

// Quant of column `col` (in its group) of row `row` in the group at `group`.
template <WeightFormat format>
int QuantAt(const uint8_t* group, int row, int col) {
  const int step = col / kStepCols;
  const int byte = row * kStepCols + col % kStepCols;
  if (format == WeightFormat::kQ8_0) return group[step * kStepBytes + byte];
  const int pair = group[step % 4 * kStepBytes + byte];
  const int nibble = step < 4 ? pair & 0xf : pair >> 4;
  const uint8_t* planes = group + kNibbleBytes;
  const int bytes = GroupBytes(format) - kNibbleBytes;
  if (bytes == kStepBytes) return nibble | ((planes[byte] >> step) & 1) << 4;
  if (bytes == 2 * kStepBytes) {
    return nibble | ((planes[step / 4 * kStepBytes + byte] >> (step % 4 * 2)) & 3) << 4;
  }
  return nibble;
}

template <WeightFormat format>
float ValueAt(const uint8_t* scales, int row, int64_t col, int quant) {
  const int64_t group = col / kTileGroup;
  const auto simple = [&](int64_t i) { return HalfAt(scales + i * kHalfRow + 2 * row); };
  const int64_t super_bytes = ScaleBytes(format, kSuperBlock);
  const uint8_t* super = scales + col / kSuperBlock * super_bytes;
  const uint8_t* sub =
      super + super_bytes + (group % kSuperGroups - kSuperGroups) * 2 * kPackTileRows + row;
  const float q = static_cast<float>(quant);
  switch (format) {
    case WeightFormat::kQ4_0:
      return simple(group) * (q - 8.0f);
    case WeightFormat::kQ5_0:
      return simple(group) * (q - 16.0f);
    case WeightFormat::kQ8_0:
      return simple(group) * (q - 128.0f);
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
      return simple(2 * group) * q + simple(2 * group + 1);
    case WeightFormat::kMXFP4:
      return PowerOfTwoAt(scales + group * kPackTileRows + row) *
             static_cast<float>(kE2m1Doubled[quant]);
    case WeightFormat::kQ6_K: {
      const int scale = static_cast<int8_t>(sub[col % kTileGroup / 16 * kPackTileRows]);
      return HalfAt(super + 2 * row) * static_cast<float>(scale) * (q - 32.0f);
    }
    default: {
      const float scale = HalfAt(super + 2 * row) * static_cast<float>(sub[0]);
      const float min = HalfAt(super + kHalfRow + 2 * row) * static_cast<float>(sub[kPackTileRows]);
      return scale * q - min;
    }
  }
}

template <WeightFormat format>
float FloatAt(const uint8_t* tile, int lane, int64_t col) {
  const int64_t index = format == WeightFormat::kBF16
                            ? (col / 2 * kPackTileRows + lane) * 2 + col % 2
                            : col * kPackTileRows + lane;
  uint16_t half;
  float value;
  if (format == WeightFormat::kF32) {
    std::memcpy(&value, tile + 4 * index, sizeof(value));
    return value;
  }
  std::memcpy(&half, tile + 2 * index, sizeof(half));
  return format == WeightFormat::kF16 ? F16ToF32(half) : BF16ToF32(half);
}

template <WeightFormat format>
void DecodeRow(const TileShape& shape, const uint8_t* tile, int lane, int64_t cols, float* out) {
  for (int64_t k = 0; k < cols; ++k) {
    if constexpr (IsFloatFormat(format)) {
      out[k] = FloatAt<format>(tile, lane, k);
    } else {
      const uint8_t* group = tile + k / kTileGroup * shape.group_bytes;
      const int quant = QuantAt<format>(group, lane, static_cast<int>(k % kTileGroup));
      out[k] = ValueAt<format>(tile + shape.scales_offset, lane, k, quant);
    }
  }
}

}  // namespace

TileShape GetTileShape(WeightFormat format, int64_t cols) {
  TileShape shape;
  shape.group_bytes = GroupBytes(format);
  const int64_t columns = format == WeightFormat::kBF16 ? RoundUp<int64_t>(cols, 2) : cols;
  shape.scales_offset = shape.group_bytes * (IsFloatFormat(format) ? columns : cols / kTileGroup);
  shape.tile_bytes = RoundUp<int64_t>(shape.scales_offset + ScaleBytes(format, cols), 64);
  return shape;
}

void DecodePackedRow(const PackedWeight& weight, int64_t row, float* out) {
  const WeightFormat format = weight.format;
  const TileShape shape = GetTileShape(format, weight.cols);
  const uint8_t* tile =
      reinterpret_cast<const uint8_t*>(weight.data) + row / kPackTileRows * shape.tile_bytes;
  const int lane = static_cast<int>(row % kPackTileRows);
  switch (format) {
#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) \
  case WeightFormat::k##name:                                               \
    return DecodeRow<WeightFormat::k##name>(shape, tile, lane, weight.cols, out);
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT
  }
}

}  // namespace llm
