// The grids of the IQ formats: a code word names a point of 8 or 4 magnitudes.
//
// Every index that a format can spell lies inside its table. Points of 8 hold a 4-bit code for each
// element, element j in the low nibble of byte j, element j + 4 in the high one: of IQ1 the value
// plus 1 (0, 1, 2), of IQ2 the index into kIq2Values. Points of 4 hold the magnitudes, element j in
// byte j.
#pragma once

#include <cstdint>

namespace llm {

extern const uint32_t kIq1Grid[2048];
extern const uint32_t kIq2XxsGrid[256];
extern const uint32_t kIq2XsGrid[512];
extern const uint32_t kIq2SGrid[1024];
extern const uint32_t kIq3XxsGrid[256];
extern const uint32_t kIq3SGrid[512];

constexpr int8_t kIq2Values[3] = {8, 25, 43};

// Code of element j of a point of 8; magnitude of element j of a point of 4.
constexpr int GridCode(uint32_t point, int j) {
  return static_cast<int>(point >> (j % 4 * 8 + j / 4 * 4)) & 0xf;
}
constexpr int GridByte(uint32_t point, int j) { return static_cast<int>(point >> (8 * j)) & 0xff; }

// Where seven bits give the signs of eight elements (bit j: element j is negative), the number of
// negative ones is even.
constexpr int EightSigns(uint32_t seven) {
  const uint32_t low = seven & 0x7f;
  return static_cast<int>(low | static_cast<uint32_t>(__builtin_parity(low)) << 7);
}

// A magnitude with bit j of `signs`.
constexpr int WithSign(int magnitude, int signs, int j) {
  return (signs >> j) & 1 ? -magnitude : magnitude;
}

}  // namespace llm
