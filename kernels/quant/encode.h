// From f32 weights to the blocks of a format: what quantising a model comes to.
#pragma once

#include <cstdint>

#include "kernels/quant/weight_format.h"

namespace llm {

// What the rows of a matrix become. `group` weights of a row share a scale: a multiple of the
// format's block, in each of which the scale is stored. The last group of a row may be shorter.
struct Quantization {
  WeightFormat format = WeightFormat::kF32;
  int64_t group = 0;  // 0: the whole row

  bool operator==(const Quantization&) const = default;
};

// Whether EncodeRow writes blocks of it: F32, F16, BF16, Q8_0, Q4_0, Q4_1,
// F8_E4M3.
bool CanEncode(WeightFormat format);

// Writes a row of `count` weights, a multiple of the format's block, as blocks, with the scales
// that FitScale and FitAffine find. A group with a weight that is no number of f16's range has a
// NaN for a scale. The same bits on every machine. REQUIRES: CanEncode(to.format).
void EncodeRow(const Quantization& to, const float* weights, int64_t count, void* blocks);

}  // namespace llm
