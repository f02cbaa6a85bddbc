// A block a row: the vocabulary in parts of 4,096, each with its maximum and its sum of
// exponentials, merged in ascending order.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kPart = 4096;

struct Best {
  float max;
  int index;  // the lowest of the maximum
};

struct Scratch {
  Best best[kWarps];
  float sums[kWarps];
};

__device__ __forceinline__ Best Better(Best a, Best b) {
  if (b.max > a.max || (b.max == a.max && b.index < a.index)) return b;
  return a;
}

// Every thread has the block's best.
__device__ __forceinline__ Best BlockBest(Best best, Best* scratch) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Best other = {__shfl_xor_sync(kAllLanes, best.max, offset),
                        __shfl_xor_sync(kAllLanes, best.index, offset)};
    best = Better(best, other);
  }
  if (Lane() == 0) scratch[WarpIndex()] = best;
  __syncthreads();
  best = scratch[0];
  for (int i = 1; i < kWarps; ++i) best = Better(best, scratch[i]);
  return best;
}

__global__ void __launch_bounds__(kThreads) row_stats_kernel(const RowStatsArgs args) {
  Scratch* scratch = DynamicShared<Scratch>();
  const int64_t row = static_cast<int64_t>(blockIdx.x);
  const float* logits = args.logits + row * args.cols;
  const float infinity = __uint_as_float(0x7f800000u);
  Best best = {-infinity, 0x7fffffff};
  float sum = 0;  // of exp(logit - best.max)
  int flags = 0;  // 1: a NaN, 2: a finite value
  for (int64_t begin = 0; begin < args.cols; begin += kPart) {
    const int64_t end = begin + kPart < args.cols ? begin + kPart : args.cols;
    Best part = {-infinity, 0x7fffffff};
    for (int64_t i = begin + static_cast<int64_t>(threadIdx.x); i < end; i += kThreads) {
      const float x = logits[i];
      flags |= (x != x ? 1 : 0) | (IsFinite(x) ? 2 : 0);
      part = Better(part, {x, static_cast<int>(i)});
    }
    part = BlockBest(part, scratch->best);
    float exponentials = 0;
    if (part.max > -infinity) {  // else the part adds nothing
      for (int64_t i = begin + static_cast<int64_t>(threadIdx.x); i < end; i += kThreads) {
        exponentials += expf(logits[i] - part.max);
      }
    }
    const float part_sum = BlockSum<kWarps>(exponentials, scratch->sums);
    const Best merged = Better(best, part);
    if (merged.max > -infinity) {
      sum = sum * expf(best.max - merged.max) + part_sum * expf(part.max - merged.max);
    }
    best = merged;
    __syncthreads();  // the scratch has been read
  }
  const bool any_nan = __syncthreads_or(flags & 1) != 0;
  const bool any_finite = __syncthreads_or(flags & 2) != 0;
  if (threadIdx.x != 0) return;
  const float nan = __uint_as_float(0x7fc00000u);
  const bool valid = !any_nan && any_finite;
  args.argmax[row] = valid ? best.index : -1;
  args.max[row] = valid ? best.max : nan;
  const float log_sum_exp = best.max == infinity ? infinity : best.max + logf(sum);
  args.log_sum_exp[row] = valid ? log_sum_exp : nan;
}

}  // namespace

cudaError_t LaunchRowStats(const RowStatsArgs& args, LaunchStream stream) {
  return Launch(row_stats_kernel,
                {dim3(static_cast<unsigned>(args.rows)), dim3(kThreads), sizeof(Scratch)}, stream,
                args);
}

}  // namespace llm
