// How the blocks of grid formats go into a tile: their words, rearranged (weight_tiles.h).
#pragma once

#include "kernels/cpu/tile_lane.h"
#include "kernels/quant/all_formats.h"

namespace llm::cpu {

// Bytes of one row of a group.
struct GridLane {
  uint8_t* group;
  int row;

  // Byte n of the row's word of vector `vector`.
  void PutPoint(int vector, int n, uint32_t point) const {
    group[vector * kStepBytes + row * kStepCols + n] = static_cast<uint8_t>(point);
  }
  // Signs of 8 columns of point n (bit j: column j), in the word of vector `vector`.
  void PutSigns(int vector, int n, int signs) const {
    uint8_t* word = group + vector * kStepBytes + row * kStepCols;
    for (int j = 0; j < 8; ++j) {
      const int bit = ((signs >> j) & 1) << (2 * n + j / 4);
      word[j % 4] = static_cast<uint8_t>(word[j % 4] | bit);
    }
  }
  // The place of point n's last sign, which the others give, holds `bit` instead.
  void PutSevenSigns(int vector, int n, int signs, uint32_t bit) const {
    PutSigns(vector, n, (signs & 0x7f) | static_cast<int>(bit & 1) << 7);
  }
};

// Calls put(lane of a group, g) for the groups of a block.
template <int kGroupBytes, typename PutFn>
void PutGridGroups(const TileLane& lane, int64_t index, const PutFn& put) {
  for (int g = 0; g < kSuperGroups; ++g) {
    put(GridLane{lane.quants + (index * kSuperGroups + g) * kGroupBytes, lane.row}, g);
  }
}

inline void Put(const TileLane& lane, int64_t index, const IQ2_XXS& block) {
  PutGridGroups<generic::Iq2XxsQuants::kGroupBytes>(lane, index, [&](const GridLane& grid, int g) {
    const auto scale = static_cast<uint32_t>(block.GroupScale(g));
    for (int n = 0; n < 4; ++n) {
      grid.PutPoint(0, n, block.Point(4 * g + n));
      grid.PutSevenSigns(1, n, block.Signs(4 * g + n), scale >> n);
    }
  });
  lane.PutHalf(index * kHalfRow, block.scale);
}

// A byte of two nibbles a group.
template <typename Block>
void PutIq2Scales(const TileLane& lane, int64_t index, const Block& block) {
  const int64_t super = index * generic::Iq2Scales::kBytes;
  lane.PutHalf(super, block.scale);
  for (int g = 0; g < kSuperGroups; ++g) lane.PutByte(super + kHalfRow, g, block.group_scales[g]);
}

inline void Put(const TileLane& lane, int64_t index, const IQ2_XS& block) {
  PutGridGroups<generic::Iq2XsQuants::kGroupBytes>(lane, index, [&](const GridLane& grid, int g) {
    for (int n = 0; n < 4; ++n) {
      const uint32_t point = block.Point(4 * g + n);
      grid.PutPoint(0, n, point);
      grid.PutSevenSigns(1, n, block.Signs(4 * g + n), point >> 8);
    }
  });
  PutIq2Scales(lane, index, block);
}

inline void Put(const TileLane& lane, int64_t index, const IQ2_S& block) {
  PutGridGroups<generic::Iq2SQuants::kGroupBytes>(lane, index, [&](const GridLane& grid, int g) {
    for (int n = 0; n < 4; ++n) {
      grid.PutPoint(0, n, block.Point(4 * g + n));
      grid.PutSigns(1, n, block.Signs(4 * g + n));
    }
    grid.group[2 * kStepBytes + grid.row] = block.points_high[g];
  });
  PutIq2Scales(lane, index, block);
}

inline void Put(const TileLane& lane, int64_t index, const IQ3_XXS& block) {
  PutGridGroups<generic::Iq3XxsQuants::kGroupBytes>(lane, index, [&](const GridLane& grid, int g) {
    const auto scale = static_cast<uint32_t>(block.GroupScale(g));
    for (int n = 0; n < 8; ++n) grid.PutPoint(n / 4, n % 4, block.Point(8 * g + n));
    for (int n = 0; n < 4; ++n) grid.PutSevenSigns(2, n, block.Signs(4 * g + n), scale >> n);
  });
  lane.PutHalf(index * kHalfRow, block.scale);
}

inline void Put(const TileLane& lane, int64_t index, const IQ3_S& block) {
  PutGridGroups<generic::Iq3SQuants::kGroupBytes>(lane, index, [&](const GridLane& grid, int g) {
    for (int n = 0; n < 8; ++n) grid.PutPoint(n / 4, n % 4, block.Point(8 * g + n));
    for (int n = 0; n < 4; ++n) grid.PutSigns(2, n, block.Signs(4 * g + n));
    grid.group[3 * kStepBytes + grid.row] = block.points_high[g];
  });
  const int64_t super = index * generic::Iq3Scales::kBytes;
  lane.PutHalf(super, block.scale);
  for (int i = 0; i < kSuperGroups / 2; ++i)
    lane.PutByte(super + kHalfRow, i, block.group_scales[i]);
}

template <typename Block>
void PutIq1(const TileLane& lane, int64_t index, const Block& block) {
  PutGridGroups<generic::Iq1SQuants::kGroupBytes>(lane, index, [&](const GridLane& grid, int g) {
    for (int n = 0; n < 4; ++n) grid.PutPoint(0, n, block.Point(4 * g + n));
    std::memcpy(grid.group + kStepBytes + 2 * grid.row, block.GroupShort(g), 2);
  });
}

inline void Put(const TileLane& lane, int64_t index, const IQ1_S& block) {
  PutIq1(lane, index, block);
  lane.PutHalf(index * kHalfRow, block.scale);
}

inline void Put(const TileLane& lane, int64_t index, const IQ1_M& block) {
  PutIq1(lane, index, block);
  const int64_t super = index * generic::Iq1MScales::kBytes;
  lane.PutHalf(super, block.Scale());
  for (int g = 0; g < kSuperGroups; ++g) {
    lane.PutSixBits(super + kHalfRow, g,
                    block.GroupScale(2 * g) | block.GroupScale(2 * g + 1) << 3);
  }
}

}  // namespace llm::cpu
