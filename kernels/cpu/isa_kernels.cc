// Compiled per ISA: lists the functions of this instruction set.
#include "kernels/cpu/isa_kernels.h"

#define LLM_CPU_STRING_INNER(x) #x
#define LLM_CPU_STRING(x) LLM_CPU_STRING_INNER(x)

namespace llm::LLM_CPU_ISA {

LinearTaskFn LinearInt8(WeightFormat format);  // linear_int8_kernel.cc
LinearTaskFn LinearF32(WeightFormat format);   // linear_f32_kernel.cc

const IsaKernels& Kernels() {
  static constexpr IsaKernels kKernels = {
      .name = LLM_CPU_STRING(LLM_CPU_ISA),
      .linear_int8 = LinearInt8,
      .linear_f32 = LinearF32,
  };
  return kKernels;
}

}  // namespace llm::LLM_CPU_ISA
