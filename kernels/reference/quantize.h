// Writes results as Activations, with the quantisation that kernels/activations.h defines.
#pragma once

#include <cstdint>

#include "kernels/activations.h"

namespace llm {

// Writes `count` results x to row `row`, columns from `col`, in the forms that `output` has.
// REQUIRES: with quants, col and count are multiples of 32. x may be where the values go.
void ReferenceStore(const Activations& output, int64_t row, int64_t col, const float* x,
                    int64_t count);

}  // namespace llm
