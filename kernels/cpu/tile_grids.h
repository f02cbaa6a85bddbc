// How kernels read the quants of grid formats: a group's code words name points, whose elements
// are magnitudes or ternary digits. Included by tile_formats.h.
//
// An index is cut to its table's size before the gather, so that no byte of a pack reads outside.
#pragma once

#include "kernels/cpu/tile_quants.h"
#include "kernels/quant/iq_grids.h"

namespace llm::LLM_CPU_ISA {

// Byte n of each word of `points`, with the bits of `high` above it.
LLM_SIMD Words PointIndex(Words points, int n, Words high) {
  return Or(And(ShiftRight(points, 8 * n), 0xff), high);
}

// Signs of 8 with an even number of negative ones: bits 25, 27, 29 and 31 (element 7 of point 0, 1,
// 2, 3; see weight_tiles.h) are not stored but follow from the others.
LLM_SIMD Bytes RestoreSigns(Words stored) {
  const Words kept = And(stored, 0x55ffffff);
  const Words pairs = Xor(kept, ShiftRight(kept, 16));
  const Words steps = Xor(pairs, ShiftRight(pairs, 8));  // byte 0: bit s is the parity of step s
  const Words points = And(Xor(steps, ShiftRight(steps, 1)), 0x55);
  return AsBytes(Or(kept, ShiftLeft(points, 25)));
}

// The four bits that lie in their places.
LLM_SIMD Words SpareBits(Words stored) {
  Words a = And(ShiftRight(stored, 25), 0x55);
  a = And(Or(a, ShiftRight(a, 1)), 0x33);
  return And(Or(a, ShiftRight(a, 2)), 0x0f);
}

// The steps of point n of 8 elements: its codes.
LLM_SIMD void UnpackPoint(Words point, int n, Bytes* w) {
  w[2 * n] = ShiftRightAnd<0>(AsBytes(point), 0x0f);
  w[2 * n + 1] = ShiftRightAnd<4>(AsBytes(point), 0x0f);
}

// Magnitudes become quants around a zero point of `zero`.
template <int... steps>
LLM_SIMD void ApplySigns(int zero, Bytes signs, Bytes* w, std::integer_sequence<int, steps...>) {
  ((w[steps] = SignedAround<steps>(zero, w[steps], signs)), ...);
}

constexpr SixteenBytes kIq2Bytes = {{8, 25, 43}};

struct Iq2Quants {
  static constexpr int kMaxQuant = 127;
  static constexpr int kZero = 64;
  LLM_SIMD void Finish(Bytes signs, Bytes* w) {
    for (int s = 0; s < kGroupSteps; ++s) w[s] = Lookup(kIq2Bytes.v, w[s]);
    ApplySigns(kZero, signs, w, Steps());
  }
};

// The scale of the group in the signs' spare bits.
struct Iq2XxsQuants : Iq2Quants {
  static constexpr int kGroupBytes = 2 * kStepBytes;
  LLM_SIMD Words Signs(const uint8_t* group, int row) {
    return AsWords(LoadBytes(group + kStepBytes + row * kStepCols));
  }
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words points = AsWords(LoadBytes(group + row * kStepCols));
    for (int n = 0; n < 4; ++n)
      UnpackPoint(Gather(kIq2XxsGrid, PointIndex(points, n, SetWords(0))), n, w);
    Finish(RestoreSigns(Signs(group, row)), w);
  }
};

// The top bit of each index in the signs' spare bits.
struct Iq2XsQuants : Iq2Quants {
  static constexpr int kGroupBytes = 2 * kStepBytes;
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words points = AsWords(LoadBytes(group + row * kStepCols));
    const Words signs = AsWords(LoadBytes(group + kStepBytes + row * kStepCols));
    for (int n = 0; n < 4; ++n) {
      const Words high = And(ShiftRight(signs, 17 + 2 * n), 0x100);
      UnpackPoint(Gather(kIq2XsGrid, PointIndex(points, n, high)), n, w);
    }
    Finish(RestoreSigns(signs), w);
  }
};

// All signs; the top bits of the indices in a byte a row behind them.
struct Iq2SQuants : Iq2Quants {
  static constexpr int kGroupBytes = 2 * kStepBytes + kPackTileRows;
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words points = AsWords(LoadBytes(group + row * kStepCols));
    const Words highs = LoadByteWords(group + 2 * kStepBytes + row);
    for (int n = 0; n < 4; ++n) {
      const Words high = And(ShiftLeft(highs, 8 - 2 * n), 0x300);
      UnpackPoint(Gather(kIq2SGrid, PointIndex(points, n, high)), n, w);
    }
    Finish(LoadBytes(group + kStepBytes + row * kStepCols), w);
  }
};

// A point a step. The scale of the group in the signs' spare bits.
struct Iq3XxsQuants {
  static constexpr int kMaxQuant = 127;
  static constexpr int kZero = 64;
  static constexpr int kGroupBytes = 3 * kStepBytes;
  LLM_SIMD Words Signs(const uint8_t* group, int row) {
    return AsWords(LoadBytes(group + 2 * kStepBytes + row * kStepCols));
  }
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    for (int half = 0; half < 2; ++half) {
      const Words points = AsWords(LoadBytes(group + half * kStepBytes + row * kStepCols));
      for (int n = 0; n < 4; ++n) {
        w[4 * half + n] = AsBytes(Gather(kIq3XxsGrid, PointIndex(points, n, SetWords(0))));
      }
    }
    ApplySigns(kZero, RestoreSigns(Signs(group, row)), w, Steps());
  }
};

// A point a step. All signs; the top bits of the indices in a byte a row behind them.
struct Iq3SQuants {
  static constexpr int kMaxQuant = 31;
  static constexpr int kZero = 16;
  static constexpr int kGroupBytes = 3 * kStepBytes + kPackTileRows;
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words highs = LoadByteWords(group + 3 * kStepBytes + row);
    for (int half = 0; half < 2; ++half) {
      const Words points = AsWords(LoadBytes(group + half * kStepBytes + row * kStepCols));
      for (int n = 0; n < 4; ++n) {
        const Words high = And(ShiftLeft(highs, 8 - 4 * half - n), 0x100);
        w[4 * half + n] = AsBytes(Gather(kIq3SGrid, PointIndex(points, n, high)));
      }
    }
    ApplySigns(kZero, LoadBytes(group + 2 * kStepBytes + row * kStepCols), w, Steps());
  }
};

// Eighths: 8 (digit - 1) +- 1 around a zero point of 9 is 8 digit, plus 2 where it goes up. Behind
// the indices lie 16 bits a row: kWidth apart the top 3 bits of each index; the bit above them says
// that the point goes down (IQ1_M), or bit 15 that all do (IQ1_S).
template <int kWidth>
struct Iq1Quants {
  static constexpr int kMaxQuant = 31;
  static constexpr int kZero = 9;
  static constexpr int kGroupBytes = kStepBytes + 2 * kPackTileRows;
  LLM_SIMD Words Shorts(const uint8_t* group, int row) {
    return LoadShortWords(group + kStepBytes + 2 * row);
  }
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words points = AsWords(LoadBytes(group + row * kStepCols));
    const Words shorts = Shorts(group, row);
    for (int n = 0; n < 4; ++n) {
      const Words high = And(ShiftLeft(ShiftRight(shorts, kWidth * n), 8), 0x700);
      UnpackPoint(Gather(kIq1Grid, PointIndex(points, n, high)), n, w);
      const int down_bit = kWidth == 4 ? 4 * n + 3 : 15;
      const Words down = And(ShiftRight(shorts, down_bit), 1);
      const Bytes up = AsBytes(And(Sub(down, SetWords(1)), 0x02020202));
      for (int s = 2 * n; s < 2 * n + 2; ++s) w[s] = Or(ShiftLeftAnd<3>(w[s], 0x18), up);
    }
  }
};
using Iq1SQuants = Iq1Quants<3>;
using Iq1MQuants = Iq1Quants<4>;

}  // namespace llm::LLM_CPU_ISA
