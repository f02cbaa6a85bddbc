// Compiled per ISA. All activations are x * sigmoid(z): SiLU with z = x, and GELU, since (1 +
// tanh(y)) / 2 = sigmoid(2 y), with z = 2 sqrt(2/pi) (x + 0.044715 x^3). This form keeps its
// relative precision for negative x.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace llm::LLM_CPU_ISA {
namespace {

LLM_SIMD F32x16 TimesSigmoid(F32x16 x, F32x16 minus_z) {
  return Div(x, Add(Set(1.0f), Exp(minus_z)));
}

template <GateKind kKind>
LLM_SIMD F32x16 Gated(F32x16 gate, F32x16 up, F32x16 limit) {
  if constexpr (kKind == GateKind::kSilu) {
    return Mul(TimesSigmoid(gate, Sub(Zero(), gate)), up);
  } else if constexpr (kKind == GateKind::kGelu) {
    const F32x16 cubic = Mul(gate, Fma(Mul(gate, gate), Set(0.044715f), Set(1.0f)));
    return Mul(TimesSigmoid(gate, Mul(cubic, Set(-1.5957691216f))), up);
  } else {  // Min and Max give their second operand where it is NaN
    const F32x16 x = Min(limit, gate);
    const F32x16 clamped = Max(Sub(Zero(), limit), Min(limit, up));
    return Mul(TimesSigmoid(x, Mul(x, Set(-1.702f))), Add(clamped, Set(1.0f)));
  }
}

template <GateKind kKind>
void RunRow(const GateInput& input, const Activations& output, int64_t row) {
  const int64_t cols = output.cols;
  const F32x16 limit = Set(input.limit);
  for (int64_t col = 0; col < cols; col += 32) {
    const Columns32 g = LoadColumns(input.gate, col, cols);
    const Columns32 u = LoadColumns(input.up, col, cols);
    StoreResults(output, row * cols + col, CountColumns(col, cols), Gated<kKind>(g.a, u.a, limit),
                 Gated<kKind>(g.b, u.b, limit));
  }
}

}  // namespace

void GateRow(const GateInput& input, const Activations& output, int64_t row) {
  switch (input.kind) {
    case GateKind::kSilu:
      return RunRow<GateKind::kSilu>(input, output, row);
    case GateKind::kGelu:
      return RunRow<GateKind::kGelu>(input, output, row);
    case GateKind::kClampedSwiglu:
      return RunRow<GateKind::kClampedSwiglu>(input, output, row);
  }
}

}  // namespace llm::LLM_CPU_ISA
