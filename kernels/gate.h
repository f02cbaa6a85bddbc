// The gated activation of a feed-forward layer: act(gate) * up.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/activations.h"
#include "src/tensor/stream.h"

namespace llm {

enum class GateActivation : int32_t {
  kSilu = 0,      // x / (1 + exp(-x))
  kGeluTanh = 1,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  // gpt-oss: x / (1 + exp(-1.702 x)) * (up + 1) with x = min(gate, limit) and up within +- limit
  kClampedSwiglu = 2,
};

struct GateParams {
  GateActivation activation = GateActivation::kSilu;
  const float* gate = nullptr;  // [rows, cols], row stride input_stride
  const float* up = nullptr;    // [rows, cols], row stride input_stride
  int64_t input_stride = 0;     // floats
  float limit = 0;              // of kClampedSwiglu: positive
  Activations output;           // [rows, cols]
};
using GateFn = absl::Status (*)(const GateParams& params, const Stream& stream);

}  // namespace llm
