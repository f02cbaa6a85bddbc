// The CUDA backend as a KernelTable over host memory: each op copies its operands to the device,
// runs the real launcher and kernels there, and copies the results back.
//
// Operands get memory of exactly their size, so that a kernel which reads or writes beyond them is
// caught. Experts are still the reference's.
#pragma once

#include "kernels/kernel_table.h"

namespace llm {

const KernelTable& CudaOnCpuKernels();  // "cuda_on_cpu"

}  // namespace llm
