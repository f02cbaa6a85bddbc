// Vector helpers of the ops that produce Activations: finiteness, and the quantisation of 32
// columns in registers.
//
// Include it only from sources that are compiled per ISA.
#pragma once

#include "kernels/activations.h"
#include "kernels/cpu/simd.h"

namespace llm::LLM_CPU_ISA {

LLM_SIMD bool AllFinite(F32x16 a) { return !Any(Not(Less(Abs(a), Set(__builtin_inff())))); }

// Quantises the 32 columns a, b to element `at` of `out`, as kernels/activations.h defines it.
LLM_SIMD void QuantizeGroup(const Activations& out, int64_t at, F32x16 a, F32x16 b) {
  float scale = __builtin_nanf("");
  float inverse = 0;
  if (AllFinite(a) && AllFinite(b)) {
    const float amax = ReduceMax(Max(Abs(a), Abs(b)));
    inverse = 127.0f / amax;
    scale = amax / 127.0f;
    if (!(inverse < __builtin_inff())) inverse = scale = 0;
  } else {
    a = b = Zero();
  }
  const F32x16 quants_a = Round(Mul(a, Set(inverse)));
  const F32x16 quants_b = Round(Mul(b, Set(inverse)));
  StoreI8(out.quants + at, quants_a);
  StoreI8(out.quants + at + 16, quants_b);
  out.scales[at / kActivationGroup] = scale;
  int16_t* sums = out.sums + at / kActivationSumGroup;
  // Sums of small integers: exact in f32 in any order.
  sums[0] = static_cast<int16_t>(ReduceAdd(quants_a));
  sums[1] = static_cast<int16_t>(ReduceAdd(quants_b));
}

// Writes `count` <= 32 results at element `at` in the forms that `out` has; with quants, count
// is 32.
LLM_SIMD void StoreResults(const Activations& out, int64_t at, int count, F32x16 a, F32x16 b) {
  if (out.values != nullptr) {
    if (count == kActivationGroup) {
      Store(out.values + at, a);
      Store(out.values + at + 16, b);
    } else {
      Store(out.values + at, a, count < 16 ? count : 16);
      if (count > 16) Store(out.values + at + 16, b, count - 16);
    }
  }
  if (out.quants != nullptr) QuantizeGroup(out, at, a, b);
}

// Columns [col, col + 32) of a row, zero beyond `cols`.
struct Columns32 {
  F32x16 a, b;
};
LLM_SIMD Columns32 LoadColumns(const float* row, int64_t col, int64_t cols) {
  const int64_t count = cols - col;
  if (count >= 32) return {Load(row + col), Load(row + col + 16)};
  if (count > 16) return {Load(row + col), Load(row + col + 16, static_cast<int>(count - 16))};
  return {Load(row + col, static_cast<int>(count)), Zero()};
}
LLM_SIMD int CountColumns(int64_t col, int64_t cols) {
  return cols - col < 32 ? static_cast<int>(cols - col) : 32;
}

}  // namespace llm::LLM_CPU_ISA
