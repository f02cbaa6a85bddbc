// Compiled per ISA: lists the functions of this instruction set.
#include "kernels/cpu/isa_kernels.h"

#define LLM_CPU_STRING_INNER(x) #x
#define LLM_CPU_STRING(x) LLM_CPU_STRING_INNER(x)

namespace llm::LLM_CPU_ISA {

const IsaKernels& Kernels() {
  static constexpr IsaKernels kKernels = {
      .name = LLM_CPU_STRING(LLM_CPU_ISA),
  };
  return kKernels;
}

}  // namespace llm::LLM_CPU_ISA
