// A thread an element, a warp a group of 32 columns.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/store_activation.cuh"

namespace llm {
namespace {

constexpr int kThreads = 256;

template <DeviceGate kActivation>
__device__ __forceinline__ float Gated(float gate, float up, float limit) {
  if constexpr (kActivation == DeviceGate::kSilu) {
    return gate / (1.0f + expf(-gate)) * up;
  } else if constexpr (kActivation == DeviceGate::kGeluTanh) {
    constexpr float kRootOfTwoByPi = 0.7978845608f;
    const float inner = kRootOfTwoByPi * (gate + 0.044715f * gate * gate * gate);
    return 0.5f * gate * (1.0f + tanhf(inner)) * up;
  } else {
    const float x = gate > limit ? limit : gate;  // NaN stays
    const float clamped = up > limit ? limit : up < -limit ? -limit : up;
    return x / (1.0f + expf(-1.702f * x)) * (clamped + 1.0f);
  }
}

template <DeviceGate kActivation>
__global__ void __launch_bounds__(kThreads) gate_kernel(const GateArgs args) {
  const int64_t row = static_cast<int64_t>(blockIdx.x);
  const int64_t col =
      static_cast<int64_t>(blockIdx.y) * kThreads + static_cast<int64_t>(threadIdx.x);
  if (col - Lane() >= args.output.cols) return;  // a whole warp
  float y = 0;
  if (col < args.output.cols) {
    const int64_t i = row * args.input_stride + col;
    y = Gated<kActivation>(args.gate[i], args.up[i], args.limit);
  }
  StoreColumn(args.output, row, col, y);
}

}  // namespace

cudaError_t LaunchGate(DeviceGate activation, const GateArgs& args, LaunchStream stream) {
  const LaunchShape shape = {
      dim3(static_cast<unsigned>(args.output.rows),
           static_cast<unsigned>((args.output.cols + kThreads - 1) / kThreads)),
      dim3(kThreads)};
  switch (activation) {
    case DeviceGate::kSilu:
      return Launch(gate_kernel<DeviceGate::kSilu>, shape, stream, args);
    case DeviceGate::kGeluTanh:
      return Launch(gate_kernel<DeviceGate::kGeluTanh>, shape, stream, args);
    case DeviceGate::kClampedSwiglu:
      return Launch(gate_kernel<DeviceGate::kClampedSwiglu>, shape, stream, args);
  }
  return cudaErrorInvalidValue;
}

}  // namespace llm
