// Compiled per ISA. Two passes over a row; the second writes and quantises 32 columns at a time.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace llm::LLM_CPU_ISA {

void RmsNormRow(const RmsNormInput& params, const Activations& output, int64_t row) {
  const int64_t cols = output.cols;
  const float* input = params.input != nullptr ? params.input + row * cols : nullptr;
  float* residual = params.residual != nullptr ? params.residual + row * cols : nullptr;
  const float* x = residual != nullptr ? residual : input;
  const bool add = residual != nullptr && input != nullptr;
  F32x16 squares_a = Zero();
  F32x16 squares_b = Zero();
  for (int64_t col = 0; col < cols; col += 32) {
    Columns32 c = LoadColumns(x, col, cols);
    if (add) {
      const Columns32 in = LoadColumns(input, col, cols);
      c = {Add(c.a, in.a), Add(c.b, in.b)};
      const int count = CountColumns(col, cols);
      Store(residual + col, c.a, count < 16 ? count : 16);
      if (count > 16) Store(residual + col + 16, c.b, count - 16);
    }
    squares_a = Fma(c.a, c.a, squares_a);
    squares_b = Fma(c.b, c.b, squares_b);
  }
  const float mean = ReduceAdd(Add(squares_a, squares_b)) / static_cast<float>(cols);
  const F32x16 factor = Set(1.0f / __builtin_sqrtf(mean + params.eps));
  for (int64_t col = 0; col < cols; col += 32) {
    const Columns32 c = LoadColumns(x, col, cols);
    const Columns32 w = LoadColumns(params.weight, col, cols);
    StoreResults(output, row * cols + col, CountColumns(col, cols), Mul(Mul(c.a, factor), w.a),
                 Mul(Mul(c.b, factor), w.b));
  }
}

}  // namespace llm::LLM_CPU_ISA
