// The raw loops that are compiled once per instruction set, as one table each.
//
// A function here takes plain pointers and sizes (its own params struct in
// kernels/cpu/<op>_kernel.h), does one task of an op on the calling thread, and cannot fail: the
// launcher in kernels/cpu/<op>.cc has checked everything and splits the work over the pool.
#pragma once

#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/linear_kernel.h"
#include "kernels/cpu/rope_kv_write_kernel.h"
#include "kernels/cpu/row_kernels.h"

namespace llm {

struct IsaKernels {
  const char* name;

  void (*rms_norm_row)(const RmsNormInput& input, const Activations& output, int64_t row);
  void (*gate_row)(const GateInput& input, const Activations& output, int64_t row);
  void (*soft_cap_row)(float* values, int64_t cols, float cap);
  void (*combine_row)(const CombineInput& input, float* out, int64_t cols);
  RowPart (*row_stats_part)(const float* logits, int count);
  void (*rope_kv_write_token)(const RopeKvWriteToken& token);

  // Fills `out` with what the rows of `block` see of keys [512 split, 512 (split + 1)).
  void (*attend_split)(const AttentionBlock& block, int split, const AttentionPartial& out);
  // Adds the partial of `split` to those of the splits before it.
  void (*merge_split)(const AttentionBlock& block, int split, const AttentionPartial& part,
                      const AttentionPartial& merged);
  // Writes the rows; first_element is that of row 0 of the block's sequence and kv head.
  void (*finish_attention)(const AttentionBlock& block, const AttentionPartial& merged,
                           const Activations& out, int64_t first_element);
  // Quantises one row of `out` whose f32 form lies at `values`.
  void (*quantize_row)(const Activations& out, int64_t row, const float* values);
  // Null for a format that has no such kernel: float formats have no int8 one.
  LinearTaskFn (*linear_int8)(WeightFormat format);
  LinearTaskFn (*linear_f32)(WeightFormat format);
  LinearTaskFn linear_bf16;  // values rounded to bf16, BF16 weights
};

namespace generic {
const IsaKernels& Kernels();
}
namespace avx2 {
const IsaKernels& Kernels();
}
namespace avx512 {
const IsaKernels& Kernels();
}
namespace avx512bf16 {
void RunLinearBF16(const LinearTask& task);  // the bits of the others, by vdpbf16ps
}

}  // namespace llm
