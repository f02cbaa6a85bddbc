// One row of the row-wise ops: rms_norm, gate, moe_combine, row_stats.
#pragma once

#include <cstdint>

#include "kernels/activations.h"

namespace llm {

// Fields of RmsNormParams, which itself would pull Abseil into the sources of an instruction set.
struct RmsNormInput {
  const float* input;  // of all rows
  float* residual;
  const float* weight;
  float eps;
};

enum class GateKind { kSilu, kGelu, kClampedSwiglu };

struct GateInput {
  GateKind kind;
  float limit;        // of kClampedSwiglu
  const float* gate;  // of this row
  const float* up;
};

// Of one token.
struct CombineInput {
  const float* input;    // of all rows, `cols` apart
  const float* weights;  // [num_experts]
  const int32_t* rows;   // [num_experts]
  int num_experts;
  const float* shared;  // [cols] or null
};

// The largest logit of one part of a row and the sum of exponentials relative to it.
struct RowPart {
  float max;
  int32_t argmax;  // within the part; the first of equals
  float sum_exp;   // of exp(x - max); 0 when all are -infinity
  bool has_nan;
  bool has_finite;
};

}  // namespace llm
