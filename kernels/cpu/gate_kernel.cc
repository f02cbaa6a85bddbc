// Compiled per ISA. Both activations are x * sigmoid(z): SiLU with z = x, and GELU, since (1 +
// tanh(y)) / 2 = sigmoid(2 y), with z = 2 sqrt(2/pi) (x + 0.044715 x^3). This form keeps its
// relative precision for negative x.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"
#include "kernels/gate.h"

namespace llm::LLM_CPU_ISA {
namespace {

LLM_SIMD F32x16 TimesSigmoid(F32x16 x, F32x16 minus_z) {
  return Div(x, Add(Set(1.0f), Exp(minus_z)));
}

LLM_SIMD F32x16 Activate(GateActivation activation, F32x16 x) {
  if (activation == GateActivation::kSilu) return TimesSigmoid(x, Sub(Zero(), x));
  const F32x16 cubic = Mul(x, Fma(Mul(x, x), Set(0.044715f), Set(1.0f)));
  return TimesSigmoid(x, Mul(cubic, Set(-1.5957691216f)));
}

}  // namespace

void GateRow(const GateParams& params, int64_t row) {
  const int64_t cols = params.output.cols;
  const float* gate = params.gate + row * params.input_stride;
  const float* up = params.up + row * params.input_stride;
  for (int64_t col = 0; col < cols; col += 32) {
    const Columns32 g = LoadColumns(gate, col, cols);
    const Columns32 u = LoadColumns(up, col, cols);
    StoreResults(params.output, row * cols + col, CountColumns(col, cols),
                 Mul(Activate(params.activation, g.a), u.a),
                 Mul(Activate(params.activation, g.b), u.b));
  }
}

}  // namespace llm::LLM_CPU_ISA
