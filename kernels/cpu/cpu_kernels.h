// The CPU backends' launchers: check arguments, split the work into tasks, run the given
// instruction set's loops.
#pragma once

#include <vector>

#include "kernels/cpu/isa_kernels.h"
#include "kernels/kernel_table.h"

namespace llm {

// The backends that this machine can run, fastest first: "avx512", "avx2", "generic".
std::vector<const KernelTable*> CpuKernelTables();

namespace cpu {}  // namespace cpu
}  // namespace llm
