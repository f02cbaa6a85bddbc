// Copies, quantisation, soft cap: a thread an element.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/element_grid.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/store_activation.cuh"

namespace llm {
namespace {

// A grid column for each run of `cols`; runs are [outer, inner].
__global__ void __launch_bounds__(kElementThreads) copy_blocks_kernel(const CopyBlocksArgs args) {
  const int64_t col = Element();
  if (col >= args.cols) return;
  const int64_t run = static_cast<int64_t>(blockIdx.x);
  const int64_t i = run / args.inner;
  const int64_t j = run % args.inner;
  args.to[i * args.to_outer + j * args.to_inner + col] =
      args.from == nullptr ? 0.0f : args.from[i * args.from_outer + j * args.from_inner + col];
}

__global__ void __launch_bounds__(kElementThreads) quantize_kernel(const QuantizeArgs args) {
  const int64_t row = static_cast<int64_t>(blockIdx.x);
  const int64_t col = Element();
  Activations output = args.output;
  output.values = nullptr;
  if (col >= output.cols) return;  // whole warps: cols is a multiple of 32
  StoreColumn(output, row, col, args.values[row * output.cols + col]);
}

__global__ void __launch_bounds__(kElementThreads) soft_cap_kernel(const SoftCapArgs args) {
  const int64_t col = Element();
  if (col >= args.cols) return;
  float& x = args.values[static_cast<int64_t>(blockIdx.x) * args.cols + col];
  x = args.cap * tanhf(x / args.cap);
}

}  // namespace

cudaError_t LaunchCopyBlocks(const CopyBlocksArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>(args.outer * args.inner), ElementBlocks(args.cols));
  return Launch(copy_blocks_kernel, {grid, dim3(kElementThreads)}, stream, args);
}

cudaError_t LaunchQuantize(const QuantizeArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>(args.output.rows), ElementBlocks(args.output.cols));
  return Launch(quantize_kernel, {grid, dim3(kElementThreads)}, stream, args);
}

cudaError_t LaunchSoftCap(const SoftCapArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>(args.rows), ElementBlocks(args.cols));
  return Launch(soft_cap_kernel, {grid, dim3(kElementThreads)}, stream, args);
}

}  // namespace llm
