// One row of a tile that is being written. Included by pack.cc's parts.
//
// A tile is zero before, so that fields are added by or.
#pragma once

#include <cstring>

#include "kernels/cpu/tile_formats.h"

namespace llm::cpu {

struct TileLane {
  uint8_t* quants;  // of the tile
  uint8_t* scales;  // of the tile
  int row;          // in the tile

  void PutHalf(int64_t offset, uint16_t half) const {
    std::memcpy(scales + offset + 2 * row, &half, sizeof(half));
  }
  void PutFloat(int64_t offset, float value) const {
    std::memcpy(scales + offset + 4 * row, &value, sizeof(value));
  }
  // A byte of the `index`-th 16 (one each row) after `offset`.
  void PutByte(int64_t offset, int index, int value) const {
    uint8_t* byte = scales + offset + index * kPackTileRows + row;
    *byte = static_cast<uint8_t>(*byte | value);
  }
  // Number g of eight of 6 bits (LoadSixBits).
  void PutSixBits(int64_t offset, int g, int value) const {
    PutByte(offset, g / 2, (value & 0xf) << (g % 2 * 4));
    PutByte(offset, 4 + g / 4, (value >> 4) << (g % 4 * 2));
  }
};

// quant(i) for i in [0, 32) becomes the integers of kBits of group `group`.
template <int kBits, typename QuantFn>
void PutBits(const TileLane& lane, int64_t group, const QuantFn& quant) {
  constexpr int kLow = LowField(kBits);
  uint8_t* low =
      lane.quants + group * generic::BitQuants<kBits>::kGroupBytes + lane.row * kStepCols;
  uint8_t* high = low + kLow * kStepBytes;
  const auto put = [](uint8_t* field, int width, int i, int value) {
    const FieldPlace place = PlaceOf(width, i / kStepCols);
    uint8_t* byte = field + place.vector * kStepBytes + i % kStepCols;
    *byte = static_cast<uint8_t>(*byte | (value & ((1 << width) - 1)) << place.shift);
  };
  for (int i = 0; i < kTileGroup; ++i) {
    const int value = quant(i);
    put(low, kLow, i, value);
    if constexpr (kBits > kLow) put(high, kBits - kLow, i, value >> kLow);
  }
}

}  // namespace llm::cpu
