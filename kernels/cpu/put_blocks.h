// How the blocks of formats with integers or named values go into a tile: Put(lane, index, block),
// `index` counting the row's blocks.
#pragma once

#include "kernels/cpu/tile_lane.h"
#include "kernels/quant/all_formats.h"

namespace llm::cpu {

template <typename Block>
int NibbleOf(const Block& block, int i) {
  if constexpr (requires { block.Quant(i); }) {
    return block.Quant(i);
  } else {
    return i < 16 ? block.quants[i] & 0xf : block.quants[i - 16] >> 4;
  }
}

// Blocks of 32.
template <int kBits, typename Block>
void PutSimple(const TileLane& lane, int64_t index, const Block& block) {
  PutBits<kBits>(lane, index, [&](int i) { return NibbleOf(block, i); });
  if constexpr (requires { block.min; }) {
    lane.PutHalf(2 * index * kHalfRow, block.scale);
    lane.PutHalf((2 * index + 1) * kHalfRow, block.min);
  } else {
    lane.PutHalf(index * kHalfRow, block.scale);
  }
}

inline void Put(const TileLane& lane, int64_t index, const Q4_0& block) {
  PutSimple<4>(lane, index, block);
}
inline void Put(const TileLane& lane, int64_t index, const Q4_1& block) {
  PutSimple<4>(lane, index, block);
}
inline void Put(const TileLane& lane, int64_t index, const Q5_0& block) {
  PutSimple<5>(lane, index, block);
}
inline void Put(const TileLane& lane, int64_t index, const Q5_1& block) {
  PutSimple<5>(lane, index, block);
}
inline void Put(const TileLane& lane, int64_t index, const IQ4_NL& block) {
  PutSimple<4>(lane, index, block);
}
inline void Put(const TileLane& lane, int64_t index, const Q8_0& block) {
  PutBits<8>(lane, index, [&](int i) { return block.quants[i] + 128; });
  lane.PutHalf(index * kHalfRow, block.scale);
}

// Quants of a block of several groups.
template <int kBits, typename Block>
void PutGroups(const TileLane& lane, int64_t index, const Block& block) {
  constexpr int kGroups = Block::kBlockSize / kTileGroup;
  for (int g = 0; g < kGroups; ++g) {
    PutBits<kBits>(lane, index * kGroups + g,
                   [&](int i) { return block.Quant(g * kTileGroup + i); });
  }
}

// Q4_K and Q5_K.
template <int kBits, typename Block>
void PutSuper(const TileLane& lane, int64_t index, const Block& block) {
  const int64_t super = index * generic::ByteScalesAndMins::kBytes;
  lane.PutHalf(super, block.scale);
  lane.PutHalf(super + kHalfRow, block.min_scale);
  for (int g = 0; g < kSuperGroups; ++g) {
    PutBits<kBits>(lane, index * kSuperGroups + g, [&](int i) { return block.Quant(g, i); });
    lane.PutByte(super + 2 * kHalfRow, 2 * g, block.group_scales.Scale(g));
    lane.PutByte(super + 2 * kHalfRow, 2 * g + 1, block.group_scales.Min(g));
  }
}
inline void Put(const TileLane& lane, int64_t index, const Q4_K& block) {
  PutSuper<4>(lane, index, block);
}
inline void Put(const TileLane& lane, int64_t index, const Q5_K& block) {
  PutSuper<5>(lane, index, block);
}

inline void Put(const TileLane& lane, int64_t index, const Q6_K& block) {
  PutGroups<6>(lane, index, block);
  const int64_t super = index * generic::SignedByteScales::kBytes;
  lane.PutHalf(super, block.scale);
  for (int g = 0; g < 2 * kSuperGroups; ++g)
    lane.PutByte(super + kHalfRow, g, static_cast<uint8_t>(block.group_scales[g]));
}

inline void Put(const TileLane& lane, int64_t index, const Q2_K& block) {
  PutGroups<2>(lane, index, block);
  const int64_t super = index * generic::NibbleScalesAndMins::kBytes;
  lane.PutHalf(super, block.scale);
  lane.PutHalf(super + kHalfRow, block.min_scale);
  for (int g = 0; g < 2 * kSuperGroups; ++g)
    lane.PutByte(super + 2 * kHalfRow, g, block.group_scales[g]);
}

inline void Put(const TileLane& lane, int64_t index, const Q3_K& block) {
  PutGroups<3>(lane, index, block);
  const int64_t super = index * generic::SixBitScales<2>::kBytes;
  lane.PutHalf(super, block.scale);
  for (int g = 0; g < 2 * kSuperGroups; ++g)
    lane.PutSixBits(super + kHalfRow + g % 2 * kSixBitBytes, g / 2, block.BiasedScale(g));
}

inline void Put(const TileLane& lane, int64_t index, const IQ4_XS& block) {
  PutGroups<4>(lane, index, block);
  const int64_t super = index * generic::SixBitScales<1>::kBytes;
  lane.PutHalf(super, block.scale);
  for (int g = 0; g < kSuperGroups; ++g) lane.PutSixBits(super + kHalfRow, g, block.BiasedScale(g));
}

inline void Put(const TileLane& lane, int64_t index, const TQ2_0& block) {
  PutGroups<2>(lane, index, block);
  lane.PutHalf(index * kHalfRow, block.scale);
}

inline void Put(const TileLane& lane, int64_t index, const Q1_0& block) {
  PutGroups<1>(lane, index, block);
  lane.PutHalf(index * kHalfRow, block.scale);
}

// The exponent is stored as that of half the scale; scales below 2^-126 become 0.
inline void Put(const TileLane& lane, int64_t index, const MXFP4& block) {
  PutGroups<4>(lane, index, block);
  lane.PutByte(index * kPackTileRows, 0, block.exponent < 2 ? 0 : block.exponent - 1);
}

inline void Put(const TileLane& lane, int64_t index, const NVFP4& block) {
  PutGroups<4>(lane, index, block);
  for (int g = 0; g < 4; ++g) lane.PutByte(index * 4 * kPackTileRows, g, block.ScaleCode(g));
}

inline void Put(const TileLane& lane, int64_t index, const TQ1_0& block) {
  for (int g = 0; g < kSuperGroups; ++g) {
    uint8_t* group = lane.quants + (index * kSuperGroups + g) * kTernaryGroupBytes;
    for (int j = 0; j < kStepCols; ++j) {
      int digits[kGroupSteps];
      for (int s = 0; s < kGroupSteps; ++s)
        digits[s] = block.Quant(g * kTileGroup + s * kStepCols + j);
      int five = 0, three = 0;
      for (int s = 0; s < 5; ++s) five = five * 3 + digits[s];
      for (int s = 5; s < kGroupSteps; ++s) three = three * 3 + digits[s];
      const int b = lane.row * kStepCols + j;
      group[b] = static_cast<uint8_t>((five * 256 + 242) / 243);
      uint8_t* low = group + kStepBytes + b % 32;
      uint8_t* high = group + kStepBytes + 32 + b / 8;
      *low = static_cast<uint8_t>(*low | (three & 0xf) << (b / 32 * 4));
      *high = static_cast<uint8_t>(*high | (three >> 4) << (b % 8));
    }
  }
  lane.PutHalf(index * kHalfRow, block.scale);
}

template <int kBits, typename Block>
void PutZeroed(const TileLane& lane, int64_t index, const Block& block) {
  PutGroups<kBits>(lane, index, block);
  const int64_t scales = index * generic::HalfScalesAndZeros<0>::kBytes;
  lane.PutHalf(scales, block.Scale());
  lane.PutByte(scales + kHalfRow, 0, block.zero);
}
inline void Put(const TileLane& lane, int64_t index, const Q4_Z& block) {
  PutZeroed<4>(lane, index, block);
}
inline void Put(const TileLane& lane, int64_t index, const Q8_Z& block) {
  PutZeroed<8>(lane, index, block);
}

inline void Put(const TileLane& lane, int64_t index, const Q8_F32& block) {
  PutGroups<8>(lane, index, block);
  lane.PutFloat(index * kFloatRow, block.scale);
}

inline void Put(const TileLane& lane, int64_t index, const NVFP4_F32& block) {
  PutGroups<4>(lane, index, block);
  const int64_t scales = index * generic::ScaledFp8Scales::kBytes;
  for (int g = 0; g < 4; ++g) lane.PutByte(scales, g, block.ScaleCode(g));
  lane.PutFloat(scales + 2 * generic::Fp8Scales::kBytes, block.scale);
}

// E4M3, 16 bytes a column.
template <typename Block>
void PutCodes(const TileLane& lane, int64_t index, const Block& block) {
  uint8_t* to = lane.quants + index * Block::kBlockSize * kPackTileRows + lane.row;
  for (int i = 0; i < Block::kBlockSize; ++i) to[i * kPackTileRows] = block.codes[i];
}
inline void Put(const TileLane& lane, int64_t index, const F8_E4M3& block) {
  PutCodes(lane, index, block);
  lane.PutFloat(index * kFloatRow, block.scale);
}
inline void Put(const TileLane& lane, int64_t index, const MXFP8& block) {
  PutCodes(lane, index, block);
  lane.PutByte(index * kPackTileRows, 0, block.exponent);
}

inline void Put(const TileLane& lane, int64_t index, const BF16_24& block) {
  uint8_t* to = lane.quants + index * generic::HalfOfBF16::kGroupBytes + lane.row * kStepCols;
  for (int s = 0; s < kGroupSteps; ++s, to += kStepBytes) {
    std::memcpy(to, &block.values[2 * s], 2 * sizeof(uint16_t));
  }
  std::memcpy(to, block.masks, sizeof(block.masks));
}

// A float "block" is one element.
template <typename Block>
requires(Block::kBlockSize == 1) void Put(const TileLane& lane, int64_t index, const Block& block) {
  std::memcpy(
      lane.quants + (index * kPackTileRows + lane.row) * static_cast<int64_t>(sizeof(Block)),
      &block, sizeof(Block));
}

// In pairs of columns.
inline void Put(const TileLane& lane, int64_t index, const BF16& block) {
  const int64_t element = (index / 2 * kPackTileRows + lane.row) * 2 + index % 2;
  std::memcpy(lane.quants + element * static_cast<int64_t>(sizeof(block)), &block, sizeof(block));
}

}  // namespace llm::cpu
