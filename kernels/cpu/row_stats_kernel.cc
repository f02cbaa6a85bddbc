// Compiled per ISA. One part of a row fits in L1, so that it is read twice: for the maximum and for
// the sum.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace llm::LLM_CPU_ISA {
namespace {

// Lanes beyond n count as -infinity.
LLM_SIMD F32x16 LoadLogits(const float* x, int n) {
  if (n >= 16) return Load(x);
  return Select(FirstLanes(n), Load(x, n), Set(-__builtin_inff()));
}

LLM_SIMD int32_t FirstEqual(const float* x, int n, float max) {
  int i = 0;
  while (i + 16 <= n && !Any(Equal(Load(x + i), Set(max)))) i += 16;
  while (i < n - 1 && x[i] != max) ++i;
  return i;
}

}  // namespace

RowPart RowStatsPart(const float* x, int n) {
  const float infinity = __builtin_inff();
  F32x16 max = Set(-infinity);
  F32x16 smallest_magnitude = Set(infinity);
  bool has_nan = false;
  for (int i = 0; i < n; i += 16) {
    const F32x16 v = LoadLogits(x + i, n - i);
    max = Max(v, max);
    smallest_magnitude = Min(Abs(v), smallest_magnitude);
    has_nan = has_nan || Any(Not(Equal(v, v)));
  }
  RowPart part = {ReduceMax(max), 0, 0, has_nan, Any(Less(smallest_magnitude, Set(infinity)))};
  if (has_nan || part.max == -infinity) return part;
  part.argmax = FirstEqual(x, n, part.max);
  F32x16 sum = Zero();
  for (int i = 0; i < n; i += 16) {
    sum = Add(sum, Exp(Sub(LoadLogits(x + i, n - i), Set(part.max))));
  }
  part.sum_exp = ReduceAdd(sum);
  return part;
}

}  // namespace llm::LLM_CPU_ISA
