// The packed 6-bit scales and minimums that Q4_K and Q5_K share.
#pragma once

#include <cstdint>

namespace llm {

// Eight (scale, min) pairs, one for each group of 32 weights, in 96 bits. Bytes 0-3 hold the scales
// of groups 0-3 and bytes 4-7 their minimums, in the low 6 bits. Groups 4-7 have their low 4 bits
// in bytes 8-11 (scale in the low nibble, min in the high one) and their top 2 bits in the spare
// top bits of bytes 0-3 and 4-7.
struct KScales {
  uint8_t packed[12];

  constexpr int Scale(int group) const {
    if (group < 4) return packed[group] & 0x3f;
    return (packed[group + 4] & 0xf) | (packed[group - 4] >> 6) << 4;
  }
  constexpr int Min(int group) const {
    if (group < 4) return packed[group + 4] & 0x3f;
    return (packed[group + 4] >> 4) | (packed[group] >> 6) << 4;
  }
};
static_assert(sizeof(KScales) == 12);

}  // namespace llm
