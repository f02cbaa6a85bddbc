// How kernels read the quants of a group of 32 columns. Included by tile_formats.h.
//
// A struct gives kGroupBytes, kMaxQuant (no quant is larger) and Unpack(group, row, w): w[8], one
// register a step, for rows [row, row + kLanes) of the group at `group`. Layout: weight_tiles.h.
#pragma once

#include <utility>

#include "kernels/quant/e2m1.h"
#include "kernels/quant/iq4_values.h"

namespace llm::LLM_CPU_ISA {

// Bits [to, to + width) of each byte: the field of step `step`, out of `width` vectors.
template <int width, int to, int step>
LLM_SIMD Bytes FieldOf(const Bytes* vectors) {
  constexpr FieldPlace kPlace = PlaceOf(width, step);
  constexpr int kMask = ((1 << width) - 1) << to;
  if constexpr (kPlace.shift <= to) {
    return ShiftLeftAnd<to - kPlace.shift>(vectors[kPlace.vector], kMask);
  } else {
    return ShiftRightAnd<kPlace.shift - to>(vectors[kPlace.vector], kMask);
  }
}

template <int width>
LLM_SIMD void LoadField(const uint8_t* p, Bytes* vectors) {
  for (int i = 0; i < width; ++i) vectors[i] = LoadBytes(p + i * kStepBytes);
}

using Steps = std::make_integer_sequence<int, kGroupSteps>;

// w[s] = the field of step s, moved up by `to`.
template <int width, int to, int... steps>
LLM_SIMD void SetField(const uint8_t* p, Bytes* w, std::integer_sequence<int, steps...>) {
  Bytes vectors[width];
  LoadField<width>(p, vectors);
  ((w[steps] = FieldOf<width, to, steps>(vectors)), ...);
}
// The same, added to what w holds.
template <int width, int to, int... steps>
LLM_SIMD void OrField(const uint8_t* p, Bytes* w, std::integer_sequence<int, steps...>) {
  Bytes vectors[width];
  LoadField<width>(p, vectors);
  ((w[steps] = Or(w[steps], FieldOf<width, to, steps>(vectors))), ...);
}

// Integers of kBits: a field of 4, 2 or 1 bits, and one for the bits above it.
template <int kBits>
struct BitQuants {
  static constexpr int kGroupBytes = kBits * kStepBytes;
  static constexpr int kMaxQuant = (1 << kBits) - 1;
  static constexpr int kLow = LowField(kBits);
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const uint8_t* quants = group + row * kStepCols;
    if constexpr (kBits == 8) {
      for (int s = 0; s < kGroupSteps; ++s) w[s] = LoadBytes(quants + s * kStepBytes);
    } else {
      SetField<kLow, 0>(quants, w, Steps());
    }
    if constexpr (kBits > kLow) {
      OrField<kBits - kLow, kLow>(quants + kLow * kStepBytes, w, Steps());
    }
  }
};

// Q1_0: 0 or 2 around a zero point of 1.
struct SignQuants {
  static constexpr int kGroupBytes = kStepBytes;
  static constexpr int kMaxQuant = 3;
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    SetField<1, 1>(group + row * kStepCols, w, Steps());
  }
};

struct SixteenBytes {
  uint8_t v[16];
};
consteval SixteenBytes Shifted(const int8_t* values, int zero) {
  SixteenBytes r = {};
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<uint8_t>(values[i] + zero);
  return r;
}
LLM_SIMD void UnpackNames(const uint8_t* group, int row, const SixteenBytes& values, Bytes* w) {
  BitQuants<4>::Unpack(group, row, w);
  for (int s = 0; s < kGroupSteps; ++s) w[s] = Lookup(values.v, w[s]);
}

// IQ4_NL, IQ4_XS: 4 bits name a value; the zero point of 128 lets Dot take full bytes.
constexpr int kIq4Zero = 128;
constexpr SixteenBytes kIq4Bytes = Shifted(kIq4Values, kIq4Zero);
struct Iq4Quants : BitQuants<4> {
  static constexpr int kZero = kIq4Zero;
  static constexpr int kMaxQuant = 255;
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    UnpackNames(group, row, kIq4Bytes, w);
  }
};

// MXFP4, NVFP4: 4 bits name a value around a zero point of 12.
constexpr int kFp4Zero = 12;
constexpr SixteenBytes kFp4Bytes = Shifted(kE2m1Doubled, kFp4Zero);
struct Fp4Quants : BitQuants<4> {
  static constexpr int kZero = kFp4Zero;
  static constexpr int kMaxQuant = 31;  // 24, but a power of two lets Dot chain evenly
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    UnpackNames(group, row, kFp4Bytes, w);
  }
};

// TQ1_0: digits in base 3, the first of fraction / 256; five steps in the first 64 bytes, then
// three in 27 numbers of 5 bits (40 bytes).
struct TernaryQuants {
  static constexpr int kGroupBytes = kTernaryGroupBytes;
  static constexpr int kMaxQuant = 3;
  LLM_SIMD Bytes TakeDigit(Bytes* fraction) {
    const Bytes digit = FirstDigit(*fraction);
    *fraction = Add(*fraction, Add(*fraction, *fraction));
    return digit;
  }
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    Bytes five = LoadBytes(group + row * kStepCols);
    for (int s = 0; s < 5; ++s) w[s] = TakeDigit(&five);
    // Of 27: 9 n + n / 2 + 1 is a fraction of 256 that begins with n's three digits.
    const Bytes n = LoadFiveBits(group + kStepBytes, row);
    const Bytes nine = Add(n, ShiftLeftAnd<3>(n, 0xf8));
    Bytes three = Add(Add(nine, ShiftRightAnd<1>(n, 0x0f)), SetBytes(1));
    for (int s = 5; s < kGroupSteps; ++s) w[s] = TakeDigit(&three);
  }
};

}  // namespace llm::LLM_CPU_ISA
