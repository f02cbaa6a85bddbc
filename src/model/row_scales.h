// Weights whose format has a scale in each block, but whose checkpoint had one for each row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/weight_format.h"

namespace llm {

// Whether the blocks of each of these rows have one scale, in the formats whose scale can be taken
// out of a sum: F8_E4M3 and Q8_F32.
bool HaveRowScales(WeightFormat format, int64_t cols, int64_t num_rows, const std::byte* blocks);

}  // namespace llm
