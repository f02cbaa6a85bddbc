// One task of the ops that multiply with packed weights.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa_kernels.h"
#include "kernels/linear.h"

namespace llm::cpu {

struct RowRange {
  int64_t begin;
  int64_t count;  // at most kLinearTaskRows
};

// Tiles [begin, end) of one output for some rows of params.activations; params.outputs are not
// looked at. REQUIRES: CheckLinear is OK.
void RunLinearTiles(const IsaKernels& isa, const LinearParams& params, const LinearOutput& output,
                    const RowRange& rows, int64_t begin, int64_t end);

}  // namespace llm::cpu
