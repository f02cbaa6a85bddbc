// The thin vector layer of `*_kernel.cc` sources: 16 f32 lanes, whatever the instruction set.
//
// F32x16 is one zmm register on avx512, two ymm on avx2, a plain array on generic. Every operation
// is lane-wise and rounds as the scalar one does, except Fma on generic, which rounds the product
// too (no such instruction there). Loads and stores need no alignment. Include it only from sources
// that are compiled per ISA.
//
// Each instruction set's header gives, besides the type:
//   Load(p) Load(p, n) Store(p, v) Store(p, v, n)   n in [0, 16]: lanes from n on are zero / left
//   alone Set(x) Zero() Add Sub Mul Div Abs Sqrt Round    Round: to nearest even integer Fma(a, b,
//   c) = a * b + c Max(a, b) Min(a, b)                             b where either is NaN Mask:
//   Less(a, b) Equal(a, b) FirstLanes(n) And(m, n) Not(m), Select(mask, a, b) = mask ? a : b,
//   Any(mask) Scale2(a, n)                                    a * 2^n for integral n in [-252, 252]
//   LoadBF16Low LoadBF16High                        the first or second of 16 pairs
//   LoadF16 LoadBF16 LoadI8 LoadU8 LoadF8E4M3       16 elements to f32, exact
//   StoreF16 StoreBF16 StoreI8 StoreF8E4M3          to nearest even; I8: REQUIRES |lane| <= 127 and
//   no NaN
#pragma once

#define LLM_SIMD static inline __attribute__((always_inline))

#if defined(LLM_CPU_ISA_AVX512)
#include "kernels/cpu/simd_avx512.h"
#elif defined(LLM_CPU_ISA_AVX2)
#include "kernels/cpu/simd_avx2.h"
#else
#include "kernels/cpu/simd_generic.h"
#endif

namespace llm::LLM_CPU_ISA {

// Sum and maximum of all lanes in a fixed order (pairwise, halving), the same on every instruction
// set.
LLM_SIMD float ReduceAdd(F32x16 v) {
  float lanes[16];
  Store(lanes, v);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

LLM_SIMD float ReduceMax(F32x16 v) {
  float lanes[16];
  Store(lanes, v);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i)
      lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
  }
  return lanes[0];
}

// e^x within 2 ulp (relative error < 1.5e-7) over the normal range; 0 below -104, infinity
// above 88.73, NaN stays NaN. x = n ln 2 + r with |r| <= ln 2 / 2, where the Taylor polynomial of
// degree 7 is off by r^8 / 8! < 6e-9.
LLM_SIMD F32x16 Exp(F32x16 x) {
  const F32x16 clamped = Min(Set(90.0f), Max(Set(-104.0f), x));
  const F32x16 n = Round(Mul(clamped, Set(1.44269504f)));
  F32x16 r =
      Fma(n, Set(-0.693145752f), clamped);  // ln 2 in two parts: the first has 9 trailing zero bits
  r = Fma(n, Set(-1.42860677e-6f), r);
  F32x16 p = Set(1.0f / 5040);
  p = Fma(p, r, Set(1.0f / 720));
  p = Fma(p, r, Set(1.0f / 120));
  p = Fma(p, r, Set(1.0f / 24));
  p = Fma(p, r, Set(1.0f / 6));
  p = Fma(p, r, Set(0.5f));
  p = Fma(p, r, Set(1.0f));
  p = Fma(p, r, Set(1.0f));
  return Scale2(p, n);
}

// tanh(x) within 4 ulp. Near zero the continued fraction x (945 + 105 z + z^2) / (945 + 420 z + 15
// z^2), z = x^2, which is off by less than x^10 / 9.8e6 relative; elsewhere 1 - 2 / (e^2|x| + 1).
LLM_SIMD F32x16 Tanh(F32x16 x) {
  const F32x16 magnitude = Abs(x);
  const F32x16 z = Mul(x, x);
  const F32x16 numerator = Mul(x, Fma(z, Add(z, Set(105.0f)), Set(945.0f)));
  const F32x16 near_zero = Div(numerator, Fma(z, Fma(z, Set(15.0f), Set(420.0f)), Set(945.0f)));
  const F32x16 e = Exp(Add(magnitude, magnitude));
  const F32x16 tail = Sub(Set(1.0f), Div(Set(2.0f), Add(e, Set(1.0f))));
  const F32x16 far = Select(Less(x, Zero()), Sub(Zero(), tail), tail);
  return Select(Less(magnitude, Set(0.6f)), near_zero, far);
}

}  // namespace llm::LLM_CPU_ISA
