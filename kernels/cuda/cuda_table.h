// The CUDA backend as a KernelTable: operands in the memory of the device that it opens.
#pragma once

#include "kernels/kernel_table.h"

namespace llm {

const KernelTable& CudaKernels();  // "cuda"

}  // namespace llm
