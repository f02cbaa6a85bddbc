// Root-mean-square norm, with the residual addition before it and the quantisation after it fused
// in.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/activations.h"
#include "src/tensor/stream.h"

namespace llm {

// With x = input, or, when `residual` is set, x = residual += input:
//   output = x / sqrt(mean(x^2) + eps) * weight          (Zhang and Sennrich, 2019)
struct RmsNormParams {
  const float* input =
      nullptr;  // [rows, cols]; may be null when residual is set: then residual is only read
  float* residual = nullptr;      // [rows, cols] or null
  const float* weight = nullptr;  // [cols]
  float eps = 0;
  Activations output;  // rows and cols are those of the input; values may be `input` itself
};
using RmsNormFn = absl::Status (*)(const RmsNormParams& params, const Stream& stream);

}  // namespace llm
