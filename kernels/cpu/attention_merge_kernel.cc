// Compiled per ISA. What happens to the partials of splits: merged in ascending order, then written
// as activations.
#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace llm::LLM_CPU_ISA {
namespace {

LLM_SIMD bool SeesSplit(const AttentionBlock& b, int row, int split) {
  return b.Position(row) >= split * kAttentionSplitKeys &&
         b.FirstKey(row) < (split + 1) * kAttentionSplitKeys;
}

// What the values of a row are multiplied with, then divided by.
struct Weighting {
  F32x16 factor;
  F32x16 sum;
};

// The sink joins last, as if it were a split of one key without a value.
LLM_SIMD Weighting AddSink(float sink, float max, F32x16 sum) {
  const float larger = max > sink ? max : sink;
  const F32x16 keep = Exp(Set(max - larger));
  return {keep, Fma(sum, keep, Exp(Set(sink - larger)))};
}

}  // namespace

void MergeSplit(const AttentionBlock& b, int split, const AttentionPartial& part,
                const AttentionPartial& merged) {
  for (int r = 0; r < b.num_rows; ++r) {
    if (!SeesSplit(b, r, split)) continue;
    const float* from = part.values + static_cast<int64_t>(r) * b.head_dim;
    float* to = merged.values + static_cast<int64_t>(r) * b.head_dim;
    if (split == b.FirstKey(r) / kAttentionSplitKeys) {
      merged.max[r] = part.max[r];
      merged.sum[r] = part.sum[r];
      for (int d = 0; d < b.head_dim; d += 16) Store(to + d, Load(from + d));
      continue;
    }
    const float max = merged.max[r] > part.max[r] ? merged.max[r] : part.max[r];
    float factors[16];
    const F32x16 keep = Exp(Set(merged.max[r] - max));
    const F32x16 take = Exp(Set(part.max[r] - max));
    for (int d = 0; d < b.head_dim; d += 16) {
      Store(to + d, Fma(Load(from + d), take, Mul(Load(to + d), keep)));
    }
    Store(factors, Fma(Set(part.sum[r]), take, Mul(Set(merged.sum[r]), keep)));
    merged.sum[r] = factors[0];
    merged.max[r] = max;
  }
}

void FinishAttention(const AttentionBlock& b, const AttentionPartial& merged,
                     const Activations& out, int64_t first_element) {
  for (int r = 0; r < b.num_rows; ++r) {
    const int index = b.row_begin + r;
    const int64_t at =
        first_element + (index / b.group) * out.cols + (index % b.group) * b.head_dim;
    const float* values = merged.values + static_cast<int64_t>(r) * b.head_dim;
    F32x16 sum = Set(merged.sum[r]);
    F32x16 factor = Set(1.0f);
    if (b.sinks != nullptr) {
      const Weighting weighting = AddSink(b.sinks[index % b.group], merged.max[r], sum);
      factor = weighting.factor;
      sum = weighting.sum;
    }
    for (int d = 0; d < b.head_dim; d += 32) {
      Columns32 c = LoadColumns(values, d, b.head_dim);
      c = {Mul(c.a, factor), Mul(c.b, factor)};
      StoreResults(out, at + d, CountColumns(d, b.head_dim), Div(c.a, sum), Div(c.b, sum));
    }
  }
}

void QuantizeRow(const Activations& out, int64_t row, const float* values) {
  for (int64_t col = 0; col < out.cols; col += 32) {
    QuantizeGroup(out, row * out.cols + col, Load(values + col), Load(values + col + 16));
  }
}

}  // namespace llm::LLM_CPU_ISA
