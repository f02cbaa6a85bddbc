// How kernels read the quants of grid formats: a group's code words name points, whose elements
// are magnitudes or ternary digits. Included by tile_formats.h.
//
// Two points are looked up in each word: those of the even bytes of a word of four indices, then
// those of the odd ones. An index is cut to its table's size, so that no byte of a pack reads
// outside.
#pragma once

#include "kernels/cpu/tile_quants.h"
#include "kernels/quant/iq_grids.h"

namespace llm::LLM_CPU_ISA {

// Indices of points `pair` and `pair` + 2, in the halves of a word. `low` and `high` are their
// upper bits, in bits 8 and 24 and up.
LLM_SIMD Words PairIndex(Words points, int pair, Words low, Words high) {
  return Or(And(ShiftRight(points, 8 * pair), 0x00ff00ff), Or(low, high));
}

// The steps of points `pair` and `pair` + 2 of 8 elements: their codes.
LLM_SIMD void UnpackPointsOf8(Words codes, int pair, Bytes* w) {
  Words fields[4];
  for (int i = 0; i < 4; ++i) fields[i] = And(ShiftRight(codes, 2 * i), 0x03030303);
  w[2 * pair] = AsBytes(JoinLow(fields[0], fields[1]));
  w[2 * pair + 1] = AsBytes(JoinLow(fields[2], fields[3]));
  w[2 * pair + 4] = AsBytes(JoinHigh(fields[0], fields[1]));
  w[2 * pair + 5] = AsBytes(JoinHigh(fields[2], fields[3]));
}

// The steps `pair` and `pair` + 2: the codes of two points of 4 elements.
LLM_SIMD void UnpackPointsOf4(Words codes, int pair, Bytes* w) {
  const Words even = And(codes, 0x0f0f0f0f);
  const Words odd = And(ShiftRight(codes, 4), 0x0f0f0f0f);
  w[pair] = AsBytes(JoinLow(even, odd));
  w[pair + 2] = AsBytes(JoinHigh(even, odd));
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

template <int kZero, int... steps>
LLM_SIMD void ApplySigns(Bytes signs, Bytes* w, std::integer_sequence<int, steps...>) {
  ((w[steps] = MirrorWhere<steps>(signs, 2 * kZero, w[steps])), ...);
}

// Codes become magnitudes, and those quants around the zero point (which `values` hold, too).
template <int kZero>
LLM_SIMD void FinishMagnitudes(const SixteenBytes& values, Bytes signs, Bytes* w) {
  for (int s = 0; s < kGroupSteps; ++s) w[s] = Lookup(values.v, w[s]);
  ApplySigns<kZero>(signs, w, Steps());
}

template <int kCount>
consteval SixteenBytes MagnitudesAround(int zero, const int8_t (&values)[kCount]) {
  SixteenBytes r = {};
  for (int i = 0; i < kCount; ++i) r.v[i] = static_cast<uint8_t>(zero + values[i]);
  return r;
}

constexpr int kIqZero = 64;  // of IQ2 and IQ3_XXS, whose magnitudes are at most 62
constexpr SixteenBytes kIq2Bytes = MagnitudesAround(kIqZero, kIq2Values);
constexpr SixteenBytes kIq3XxsBytes = MagnitudesAround(kIqZero, kIq3XxsValues);
constexpr SixteenBytes kIq3SBytes = MagnitudesAround(16, {1, 3, 5, 7, 9, 11, 13, 15});

struct Iq2Quants {
  static constexpr int kMaxQuant = 127;
  static constexpr int kZero = kIqZero;
};

// The scale of the group in the signs' spare bits.
struct Iq2XxsQuants : Iq2Quants {
  static constexpr int kGroupBytes = 2 * kStepBytes;
  LLM_SIMD Words Signs(const uint8_t* group, int row) {
    return AsWords(LoadBytes(group + kStepBytes + row * kStepCols));
  }
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words points = AsWords(LoadBytes(group + row * kStepCols));
    for (int pair = 0; pair < 2; ++pair) {
      const Words index = And(ShiftRight(points, 8 * pair), 0x00ff00ff);
      UnpackPointsOf8(LookupPairs<256>(kIq2XxsGrid, index), pair, w);
    }
    FinishMagnitudes<kZero>(kIq2Bytes, RestoreSigns(Signs(group, row)), w);
  }
};

// The top bit of each index in the signs' spare bits.
struct Iq2XsQuants : Iq2Quants {
  static constexpr int kGroupBytes = 2 * kStepBytes;
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words points = AsWords(LoadBytes(group + row * kStepCols));
    const Words signs = AsWords(LoadBytes(group + kStepBytes + row * kStepCols));
    for (int pair = 0; pair < 2; ++pair) {
      const Words low = And(ShiftRight(signs, 17 + 2 * pair), 0x100);
      const Words high = And(ShiftRight(signs, 5 + 2 * pair), 0x01000000);
      const Words index = PairIndex(points, pair, low, high);
      UnpackPointsOf8(LookupPairs<512>(kIq2XsGrid, index), pair, w);
    }
    FinishMagnitudes<kZero>(kIq2Bytes, RestoreSigns(signs), w);
  }
};

// All signs; the top bits of the indices in a byte a row behind them.
struct Iq2SQuants : Iq2Quants {
  static constexpr int kGroupBytes = 2 * kStepBytes + kPackTileRows;
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words points = AsWords(LoadBytes(group + row * kStepCols));
    const Words tops = LoadByteWords(group + 2 * kStepBytes + row);
    for (int pair = 0; pair < 2; ++pair) {
      const Words low = And(ShiftLeft(tops, 8 - 2 * pair), 0x300);
      const Words high = And(ShiftLeft(tops, 20 - 2 * pair), 0x03000000);
      const Words index = PairIndex(points, pair, low, high);
      UnpackPointsOf8(LookupPairs<1024>(kIq2SGrid, index), pair, w);
    }
    const Bytes signs = LoadBytes(group + kStepBytes + row * kStepCols);
    FinishMagnitudes<kZero>(kIq2Bytes, signs, w);
  }
};

// A point a step. The scale of the group in the signs' spare bits.
struct Iq3XxsQuants {
  static constexpr int kMaxQuant = 127;
  static constexpr int kZero = kIqZero;
  static constexpr int kGroupBytes = 3 * kStepBytes;
  LLM_SIMD Words Signs(const uint8_t* group, int row) {
    return AsWords(LoadBytes(group + 2 * kStepBytes + row * kStepCols));
  }
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    for (int half = 0; half < 2; ++half) {
      const Words points = AsWords(LoadBytes(group + half * kStepBytes + row * kStepCols));
      for (int pair = 0; pair < 2; ++pair) {
        const Words index = And(ShiftRight(points, 8 * pair), 0x00ff00ff);
        UnpackPointsOf4(LookupPairs<256>(kIq3XxsGrid, index), pair, w + 4 * half);
      }
    }
    FinishMagnitudes<kZero>(kIq3XxsBytes, RestoreSigns(Signs(group, row)), w);
  }
};

// A point a step. All signs; the top bits of the indices in a byte a row behind them.
struct Iq3SQuants {
  static constexpr int kMaxQuant = 31;
  static constexpr int kZero = 16;
  static constexpr int kGroupBytes = 3 * kStepBytes + kPackTileRows;
  LLM_SIMD void Unpack(const uint8_t* group, int row, Bytes* w) {
    const Words tops = LoadByteWords(group + 3 * kStepBytes + row);
    for (int half = 0; half < 2; ++half) {
      const Words points = AsWords(LoadBytes(group + half * kStepBytes + row * kStepCols));
      for (int pair = 0; pair < 2; ++pair) {
        const Words low = And(ShiftLeft(tops, 8 - 4 * half - pair), 0x100);
        const Words high = And(ShiftLeft(tops, 22 - 4 * half - pair), 0x01000000);
        const Words index = PairIndex(points, pair, low, high);
        UnpackPointsOf4(LookupPairs<512>(kIq3SGrid, index), pair, w + 4 * half);
      }
    }
    const Bytes signs = LoadBytes(group + 2 * kStepBytes + row * kStepCols);
    FinishMagnitudes<kZero>(kIq3SBytes, signs, w);
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
    for (int pair = 0; pair < 2; ++pair) {
      const Words low = And(ShiftLeft(shorts, 8 - kWidth * pair), 0x700);
      const Words high = And(ShiftLeft(shorts, 24 - kWidth * (pair + 2)), 0x07000000);
      const Words index = PairIndex(points, pair, low, high);
      UnpackPointsOf8(LookupPairs<2048>(kIq1Grid, index), pair, w);
    }
    for (int n = 0; n < 4; ++n) {
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
