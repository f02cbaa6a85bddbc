// Compiled per ISA. Both activations are x * sigmoid(z): SiLU with z = x, and GELU, since (1 +
// tanh(y)) / 2 = sigmoid(2 y), with z = 2 sqrt(2/pi) (x + 0.044715 x^3). This form keeps its
// relative precision for negative x.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace llm::LLM_CPU_ISA {
namespace {

LLM_SIMD F32x16 TimesSigmoid(F32x16 x, F32x16 minus_z) {
  return Div(x, Add(Set(1.0f), Exp(minus_z)));
}

LLM_SIMD F32x16 Activate(bool gelu, F32x16 x) {
  if (!gelu) return TimesSigmoid(x, Sub(Zero(), x));
  const F32x16 cubic = Mul(x, Fma(Mul(x, x), Set(0.044715f), Set(1.0f)));
  return TimesSigmoid(x, Mul(cubic, Set(-1.5957691216f)));
}

}  // namespace

void GateRow(const GateInput& input, const Activations& output, int64_t row) {
  const int64_t cols = output.cols;
  for (int64_t col = 0; col < cols; col += 32) {
    const Columns32 g = LoadColumns(input.gate, col, cols);
    const Columns32 u = LoadColumns(input.up, col, cols);
    StoreResults(output, row * cols + col, CountColumns(col, cols),
                 Mul(Activate(input.gelu, g.a), u.a), Mul(Activate(input.gelu, g.b), u.b));
  }
}

}  // namespace llm::LLM_CPU_ISA
