// out = activations x weight^T + bias, for one or several weights that read the same activations,
// in one parallel region.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/activations.h"
#include "kernels/pack.h"
#include "src/tensor/stream.h"

namespace llm {

struct LinearOutput {
  PackedWeight weight;          // [rows = outputs, cols = inputs]
  const float* bias = nullptr;  // [outputs] or null
  float* out = nullptr;         // [activations.rows, outputs], row stride out_stride
  int64_t out_stride = 0;       // floats
};

// Integer weight formats read `activations.quants` when that is set, else `values`; float formats
// (F32, F16, BF16, F8_E4M3, MXFP8, BF16_24) always read `values`, in f32 unless round_to_bf16 is
// set. INVALID_ARGUMENT when the needed form is missing or cols differ.
//
// Order of arithmetic: each output element is one f32 accumulator that runs over column groups in
// ascending order, whatever the number of rows, threads or outputs of the call. Integer formats
// add, per weight group g (16 or 32 columns),
//   scale_a[g] * (scale_w[g] * sum(q_a * q_w) + min_w[g] * sum(q_a))        (the integer sums are
//   exact)
// and Q4_Z, Q8_Z scale_a[g] * scale_w[g] * sum(q_a * (q_w - zero_w[g])), the sum exact.
// With round_to_bf16, the second column of each pair before the first; the CPU backends take
// subnormal inputs and sums for zero there, as vdpbf16ps does.
struct LinearParams {
  Activations activations;
  absl::Span<const LinearOutput> outputs;
  // Values, to nearest even, where they meet BF16 weights; allows a GPU without batch_invariant to
  // round them to other 16 and 8 bits where it meets F16 and 8-bit weights.
  bool round_to_bf16 = false;
};
using LinearFn = absl::Status (*)(const LinearParams& params, const Stream& stream);

}  // namespace llm
