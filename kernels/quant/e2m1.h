// Floats of 4 bits (Open Compute Project, Microscaling Formats, 2023): a sign, 2 bits of exponent,
// 1 of mantissa.
#pragma once

#include <cstdint>

#include "kernels/quant/device_table.h"

namespace llm {

// Twice the value of each code, so that all are integers.
LLM_DEVICE_TABLE int8_t kE2m1Doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace llm
