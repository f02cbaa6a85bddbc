// The grids of the IQ formats: a code word names a point of 8 or 4 magnitudes.
//
// Every index that a format can spell lies inside its table. Element j of a point of 8 is a code of
// 2 bits at bit 8 (j % 2) + 2 (j / 2): of IQ1 the value plus 1 (0, 1, 2), of IQ2 the index into
// kIq2Values. Element j of a point of 4 is one of 4 bits at 8 (j % 2) + 4 (j / 2): of IQ3_XXS the
// index into kIq3XxsValues, of IQ3_S (magnitude - 1) / 2.
#pragma once

#include <cstdint>

#include "kernels/quant/device_table.h"

namespace llm {

// One more than the points, so that a gather of 4 bytes stays inside.
#ifdef __CUDA_ARCH__
#define LLM_GRID __device__ constexpr
#include "kernels/quant/iq_grid_tables.def"
#undef LLM_GRID
#else
extern const uint16_t kIq1Grid[2048 + 1];
extern const uint16_t kIq2XxsGrid[256 + 1];
extern const uint16_t kIq2XsGrid[512 + 1];
extern const uint16_t kIq2SGrid[1024 + 1];
extern const uint16_t kIq3XxsGrid[256 + 1];
extern const uint16_t kIq3SGrid[512 + 1];
#endif

LLM_DEVICE_TABLE int8_t kIq2Values[3] = {8, 25, 43};
LLM_DEVICE_TABLE int8_t kIq3XxsValues[8] = {4, 12, 20, 28, 36, 44, 52, 62};

// Code of element j of a point of 8, of 4.
constexpr int CodeOf8(int point, int j) { return (point >> (j % 2 * 8 + j / 2 * 2)) & 3; }
constexpr int CodeOf4(int point, int j) { return (point >> (j % 2 * 8 + j / 2 * 4)) & 0xf; }

// Where seven bits give the signs of eight elements (bit j: element j is negative), the number of
// negative ones is even.
constexpr int EightSigns(uint32_t seven) {
  const uint32_t low = seven & 0x7f;
  const uint32_t nibble = (low ^ low >> 4) & 0xf;
  const uint32_t odd = (0x6996u >> nibble) & 1;  // bit n: whether n has an odd number of ones
  return static_cast<int>(low | odd << 7);
}

// A magnitude with bit j of `signs`.
constexpr int WithSign(int magnitude, int signs, int j) {
  return (signs >> j) & 1 ? -magnitude : magnitude;
}

}  // namespace llm
