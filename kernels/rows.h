// Plain moves and small changes of f32 rows.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/activations.h"
#include "src/tensor/stream.h"

namespace llm {

// to[i * to_outer + j * to_inner + c] = from[i * from_outer + j * from_inner + c], or 0 when `from`
// is null, for i < outer, j < inner, c < cols. Source and destination do not overlap.
struct CopyBlocksParams {
  const float* from = nullptr;
  int64_t from_outer = 0;  // floats
  int64_t from_inner = 0;
  float* to = nullptr;
  int64_t to_outer = 0;
  int64_t to_inner = 0;
  int64_t outer = 0;
  int64_t inner = 0;
  int64_t cols = 0;
};
using CopyBlocksFn = absl::Status (*)(const CopyBlocksParams& params, const Stream& stream);

// to[row, col] = from[row, order[col]], or with several orders that of the row.
struct ReorderParams {
  const float* from = nullptr;   // [rows, cols]
  const float* order = nullptr;  // [cols] or [orders, cols], whole numbers in [0, cols)
  float* to = nullptr;           // [rows, cols], elsewhere
  int64_t rows = 0;
  int64_t cols = 0;
  // [orders + 1], as expert_linear has it: order i is that of rows [begin[i], begin[i + 1]). Empty:
  // there is one.
  absl::Span<const int32_t> order_begin = {};
};
using ReorderFn = absl::Status (*)(const ReorderParams& params, const Stream& stream);

// Quantises activations.values into the other forms that are set.
struct QuantizeParams {
  Activations activations;  // with values and quants
};
using QuantizeFn = absl::Status (*)(const QuantizeParams& params, const Stream& stream);

// values = cap * tanh(values / cap)  (Bello et al., 2016)
struct SoftCapParams {
  float* values = nullptr;  // [rows, cols]
  int64_t rows = 0;
  int64_t cols = 0;
  float cap = 0;  // positive
};
using SoftCapFn = absl::Status (*)(const SoftCapParams& params, const Stream& stream);

}  // namespace llm
