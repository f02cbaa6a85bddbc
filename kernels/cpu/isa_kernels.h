// The raw loops that are compiled once per instruction set, as one table each.
//
// A function here takes plain pointers and sizes (its own params struct in
// kernels/cpu/<op>_kernel.h), does one task of an op on the calling thread, and cannot fail: the
// launcher in kernels/cpu/<op>.cc has checked everything and splits the work over the pool.
#pragma once

#include "kernels/cpu/linear_kernel.h"

namespace llm {

struct IsaKernels {
  const char* name;
  // Null for a format that has no such kernel: float formats have no int8 one.
  LinearTaskFn (*linear_int8)(WeightFormat format);
  LinearTaskFn (*linear_f32)(WeightFormat format);
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

}  // namespace llm
