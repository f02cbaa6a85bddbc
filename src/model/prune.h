// Weights of a linear layer made zero, by their size alone.
#pragma once

#include <cstdint>

#include "src/model/quantize_options.h"

namespace llm {

// Works on one output's weights, row[count]: kTwoOfFour keeps the two largest of each four
// neighbours (count is a multiple of 4), kMagnitude makes floor(part * count) of them 0, the
// smallest. Among equal ones the later goes.
void Prune(Pruning pruning, float part, float* row, int64_t count);

}  // namespace llm
