// A block a row, twice over it: the sum of squares, then the results. The second pass finds the row
// in the first-level cache (32 KiB hold 8,192 columns).
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/store_activation.cuh"

namespace llm {
namespace {

// 8 warps of loads hide each other's latency; the number belongs to the order of the sum.
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

__global__ void __launch_bounds__(kThreads) rms_norm_kernel(const RmsNormArgs args) {
  float* scratch = DynamicShared<float>();  // [kWarps]
  const int64_t cols = args.output.cols;
  const int64_t row = static_cast<int64_t>(blockIdx.x);
  const float* input = args.input != nullptr ? args.input + row * cols : nullptr;
  float* residual = args.residual != nullptr ? args.residual + row * cols : nullptr;
  float squares = 0;
  for (int64_t col = static_cast<int64_t>(threadIdx.x); col < cols; col += kThreads) {
    float x = residual != nullptr ? residual[col] : input[col];
    if (residual != nullptr && input != nullptr) {
      x += input[col];
      residual[col] = x;
    }
    squares = fmaf(x, x, squares);
  }
  const float mean = BlockSum<kWarps>(squares, scratch) / static_cast<float>(cols);
  const float factor = 1.0f / sqrtf(mean + args.eps);
  const float* x = residual != nullptr ? residual : input;
  for (int64_t begin = int64_t{WarpIndex()} * kWarp; begin < cols; begin += kThreads) {
    const int64_t col = begin + Lane();  // the thread's own columns of the first pass
    const float y = col < cols ? x[col] * factor * args.weight[col] : 0.0f;
    StoreColumn(args.output, row, col, y);
  }
}

}  // namespace

cudaError_t LaunchRmsNorm(const RmsNormArgs& args, LaunchStream stream) {
  return Launch(
      rms_norm_kernel,
      {dim3(static_cast<unsigned>(args.output.rows)), dim3(kThreads), kWarps * sizeof(float)},
      stream, args);
}

}  // namespace llm
