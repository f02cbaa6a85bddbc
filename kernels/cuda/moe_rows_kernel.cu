// Rows of experts gathered and combined, columns put in order.
#include "kernels/cuda/element_grid.cuh"
#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/launch.cuh"

namespace llm {
namespace {

// A block a row.
template <typename T>
__device__ __forceinline__ void CopyRow(const T* from, int64_t from_row, T* to, int64_t to_row,
                                        int64_t size) {
  for (int64_t i = static_cast<int64_t>(threadIdx.x); i < size; i += kElementThreads) {
    to[to_row * size + i] = from[from_row * size + i];
  }
}

__global__ void __launch_bounds__(kElementThreads) moe_gather_kernel(const MoeGatherArgs args) {
  const int64_t row = static_cast<int64_t>(blockIdx.x);
  const int64_t token = args.row_tokens[row];
  const Activations& in = args.input;
  const Activations& out = args.output;
  if (out.values != nullptr) CopyRow<float>(in.values, token, out.values, row, in.cols);
  if (out.quants == nullptr) return;
  CopyRow<uint32_t>(reinterpret_cast<const uint32_t*>(in.quants), token,
                    reinterpret_cast<uint32_t*>(out.quants), row, in.cols / 4);
  CopyRow<float>(in.scales, token, out.scales, row, in.cols / kActivationGroup);
  CopyRow<int16_t>(in.sums, token, out.sums, row, in.cols / kActivationSumGroup);
}

__global__ void __launch_bounds__(kElementThreads) moe_combine_kernel(const MoeCombineArgs args) {
  const int64_t token = static_cast<int64_t>(blockIdx.x);
  const int64_t col = Element();
  if (col >= args.cols) return;
  float sum = 0;
  for (int64_t j = token * args.experts_per_token; j < (token + 1) * args.experts_per_token; ++j) {
    sum = fmaf(args.weights[j], args.input[args.rows[j] * args.cols + col], sum);
  }
  const int64_t at = token * args.cols + col;
  args.out[at] = args.shared != nullptr ? sum + args.shared[at] : sum;
}

// The last order that begins at or before `row`: those before it that begin there too have no rows.
__device__ __forceinline__ int OrderOf(const ReorderArgs& args, int64_t row) {
  if (args.begin == nullptr) return 0;
  int low = 0;
  int high = args.num_orders;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (args.begin[middle] <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__global__ void __launch_bounds__(kElementThreads) reorder_kernel(const ReorderArgs args) {
  const int64_t row = static_cast<int64_t>(blockIdx.x);
  const int64_t col = Element();
  if (col >= args.cols) return;
  const float* order = args.order + OrderOf(args, row) * args.cols;
  args.to[row * args.cols + col] = args.from[row * args.cols + static_cast<int64_t>(order[col])];
}

}  // namespace

cudaError_t LaunchMoeGather(const MoeGatherArgs& args, LaunchStream stream) {
  return Launch(moe_gather_kernel,
                {dim3(static_cast<unsigned>(args.output.rows)), dim3(kElementThreads)}, stream,
                args);
}

cudaError_t LaunchMoeCombine(const MoeCombineArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>(args.num_tokens), ElementBlocks(args.cols));
  return Launch(moe_combine_kernel, {grid, dim3(kElementThreads)}, stream, args);
}

cudaError_t LaunchReorder(const ReorderArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>(args.rows), ElementBlocks(args.cols));
  return Launch(reorder_kernel, {grid, dim3(kElementThreads)}, stream, args);
}

}  // namespace llm
