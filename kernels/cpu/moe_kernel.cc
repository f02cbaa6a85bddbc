// Compiled per ISA. A token's experts are added in routing order, the shared one last; 16 columns
// at a time.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd.h"

namespace llm::LLM_CPU_ISA {

void CombineRow(const CombineInput& input, float* out, int64_t cols) {
  for (int64_t col = 0; col < cols; col += 16) {
    const int n = cols - col < 16 ? static_cast<int>(cols - col) : 16;
    F32x16 sum = Zero();
    for (int j = 0; j < input.num_experts; ++j) {
      const F32x16 x = Load(input.input + input.rows[j] * cols + col, n);
      sum = Fma(Set(input.weights[j]), x, sum);
    }
    if (input.shared != nullptr) sum = Add(sum, Load(input.shared + col, n));
    Store(out + col, sum, n);
  }
}

void SoftCapRow(float* values, int64_t cols, float cap) {
  for (int64_t col = 0; col < cols; col += 16) {
    const int n = cols - col < 16 ? static_cast<int>(cols - col) : 16;
    const F32x16 x = Load(values + col, n);
    Store(values + col, Mul(Set(cap), Tanh(Div(x, Set(cap)))), n);
  }
}

}  // namespace llm::LLM_CPU_ISA
