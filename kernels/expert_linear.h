// `linear` with a weight of its own for each run of rows: the experts of a layer, or the heads of
// latent attention.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/activations.h"
#include "kernels/linear.h"
#include "kernels/pack.h"
#include "src/tensor/stream.h"

namespace llm {

struct ExpertOutput {
  PackedWeight weight;          // [num_experts * outputs, inputs]: expert after expert
  int64_t outputs = 0;          // of one expert: a multiple of kPackTileRows
  const float* bias = nullptr;  // [num_experts, outputs] or null
  float* out = nullptr;         // [activations.rows, outputs]
};

// Rows [expert_begin[e], expert_begin[e + 1]) meet the weight of expert e. Every result has the
// bits that `linear` gives with that expert's weight alone; an expert's weights are read once for
// all of its rows.
struct ExpertLinearParams {
  Activations activations;
  // [num_experts + 1], ascending, from 0 to rows; empty: all experts have as many rows.
  absl::Span<const int32_t> expert_begin;
  absl::Span<const ExpertOutput> outputs;
  bool round_to_bf16 = false;  // as LinearParams'
};
using ExpertLinearFn = absl::Status (*)(const ExpertLinearParams& params, const Stream& stream);

// By expert_begin, else by the first output. 0 when neither tells.
int64_t NumExperts(const ExpertLinearParams& params);

// Of CheckExpertLinear's params, what expert `e` is to `linear`. `expert_bytes` is the packed size
// of one expert's weight.
LinearOutput OutputOfExpert(const ExpertLinearParams& params, const ExpertOutput& output, int64_t e,
                            size_t expert_bytes);
Activations RowsOfExpert(const ExpertLinearParams& params, int64_t e);

}  // namespace llm
