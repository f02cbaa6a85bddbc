// One task of the ops that multiply with packed weights.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa_kernels.h"
#include "kernels/linear.h"

namespace llm::cpu {

// Tiles [begin, end) of one output for rows [row, row + num_rows), at most kLinearTaskRows.
// REQUIRES: CheckLinear is OK.
void RunLinearTiles(const IsaKernels& isa, const Activations& a, const LinearOutput& output,
                    int64_t row, int64_t num_rows, int64_t begin, int64_t end);

}  // namespace llm::cpu
