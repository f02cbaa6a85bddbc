// Scales of MXFP4 and MXFP8 that are no numbers.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/quant/weight_format.h"

namespace llm {

// Some rows of a tensor, as blocks of its format.
struct BlockRows {
  absl::string_view tensor;
  WeightFormat format;
  int64_t cols = 0;
  int64_t first = 0;
  int64_t count = 0;
  const void* blocks = nullptr;
};

// INVALID_ARGUMENT, naming tensor and row, where the exponent of a block is 0xff: the code of NaN
// (E8M0 of the Microscaling Formats, section 5.4.1), for which weights have no value. Other readers
// take it for 2^128, whose products are infinite. OK for formats without such exponents.
absl::Status RefuseNanScales(const BlockRows& rows);

}  // namespace llm
