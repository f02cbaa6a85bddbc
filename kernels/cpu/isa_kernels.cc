// Compiled per ISA: lists the functions of this instruction set.
#include "kernels/cpu/isa_kernels.h"

#define LLM_CPU_STRING_INNER(x) #x
#define LLM_CPU_STRING(x) LLM_CPU_STRING_INNER(x)

namespace llm::LLM_CPU_ISA {

// Defined in <op>_kernel.cc.
void RmsNormRow(const RmsNormInput& input, const Activations& output, int64_t row);
void GateRow(const GateInput& input, const Activations& output, int64_t row);
void SoftCapRow(float* values, int64_t cols, float cap);
void CombineRow(const CombineInput& input, float* out, int64_t cols);
RowPart RowStatsPart(const float* x, int n);
void RopeKvWriteOneToken(const RopeKvWriteToken& t);
void AttendSplit(const AttentionBlock& b, int split, const AttentionPartial& out);
void MergeSplit(const AttentionBlock& b, int split, const AttentionPartial& part,
                const AttentionPartial& merged);
void FinishAttention(const AttentionBlock& b, const AttentionPartial& merged,
                     const Activations& out, int64_t first_element);
void QuantizeRow(const Activations& out, int64_t row, const float* values);
LinearTaskFn LinearInt8(WeightFormat format);  // linear_int8_kernel.cc
LinearTaskFn LinearF32(WeightFormat format);   // linear_f32_kernel.cc
void RunLinearBF16(const LinearTask& task);    // linear_bf16_kernel.cc

const IsaKernels& Kernels() {
  static constexpr IsaKernels kKernels = {
      .name = LLM_CPU_STRING(LLM_CPU_ISA),
      .rms_norm_row = RmsNormRow,
      .gate_row = GateRow,
      .soft_cap_row = SoftCapRow,
      .combine_row = CombineRow,
      .row_stats_part = RowStatsPart,
      .rope_kv_write_token = RopeKvWriteOneToken,
      .attend_split = AttendSplit,
      .merge_split = MergeSplit,
      .finish_attention = FinishAttention,
      .quantize_row = QuantizeRow,
      .linear_int8 = LinearInt8,
      .linear_f32 = LinearF32,
      .linear_bf16 = RunLinearBF16,
  };
  return kKernels;
}

}  // namespace llm::LLM_CPU_ISA
