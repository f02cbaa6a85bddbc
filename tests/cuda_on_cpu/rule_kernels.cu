// One rule a kernel: rules_test.cc says what is to be found.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp_reduce.cuh"
#include "tests/cuda_on_cpu/rule_kernels.h"

namespace llm {
namespace {

constexpr int kThreads = 128;

__device__ int Thread() { return static_cast<int>(threadIdx.x); }

template <bool kBarrier>
__global__ void tree_sum_kernel(const RuleArgs args) {
  float* shared = DynamicShared<float>();
  const int i = static_cast<int>(blockIdx.x) * kThreads + Thread();
  shared[Thread()] = i < args.count ? args.in[i] : 0.0f;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (Thread() < half) shared[Thread()] += shared[Thread() + half];
    if (kBarrier) __syncthreads();
  }
  if (Thread() == 0) args.out[blockIdx.x] = shared[0];
}

template <bool kSync>
__global__ void reverse_kernel(const RuleArgs args) {
  float* shared = DynamicShared<float>();
  shared[Thread()] = args.in[Thread()];
  if (kSync) __syncwarp();
  args.out[Thread()] = shared[kWarp - 1 - Thread()];
}

__global__ void read_unwritten_kernel(const RuleArgs args) {
  float* shared = DynamicShared<float>();
  if (Thread() < 31) shared[Thread()] = args.in[Thread()];
  __syncthreads();
  args.out[Thread()] = shared[Thread()];
}

__global__ void one_too_many_kernel(const RuleArgs args) {
  for (int i = Thread(); i <= args.count; i += kThreads) args.out[i] = args.in[i];
}

__global__ void read_shared_beyond_end_kernel(const RuleArgs args) {
  float* shared = DynamicShared<float>();
  shared[Thread()] = args.in[Thread()];
  __syncthreads();
  args.out[Thread()] = shared[Thread() + 1];
}

__global__ void shuffle_of_half_kernel(const RuleArgs args) {
  if (Thread() >= 16) return;
  args.out[Thread()] = __shfl_xor_sync(kAllLanes, args.in[Thread()], 1);
}

__global__ void barrier_of_half_kernel(const RuleArgs args) {
  if (Thread() < 16) {
    __syncthreads();
  } else {
    args.out[Thread()] = WarpSum(args.in[Thread()]);
  }
}

__global__ void misaligned_kernel(const RuleArgs args) {
  const float4 x = *reinterpret_cast<const float4*>(args.in + 1);
  args.out[0] = x.x + x.w;
}

template <AsyncFault kFault>
__global__ void async_copy_kernel(const RuleArgs args) {
  float* shared = DynamicShared<float>();
  CopyAsync16(shared + 4 * Thread(), args.in + 4 * Thread(), 16);
  if (kFault != AsyncFault::kNoCommit) CommitCopies();
  if (kFault != AsyncFault::kNoWait) WaitCopies<0>();
  if (kFault != AsyncFault::kNoBarrier) __syncthreads();
  for (int i = Thread(); i < 4 * kThreads; i += kThreads) args.out[i] = shared[i];
}

__global__ void shuffles_kernel(const RuleArgs args) {
  const float x = args.in[Thread()];
  args.out[Thread()] = __shfl_up_sync(kAllLanes, x, 3, 16);
  args.out[32 + Thread()] = __shfl_down_sync(kAllLanes, x, 3);
  args.out[64 + Thread()] = __shfl_xor_sync(kAllLanes, x, 5);
  args.out[96 + Thread()] = __shfl_sync(kAllLanes, x, 7);
  args.out[128 + Thread()] =
      static_cast<float>(__popc(__ballot_sync(kAllLanes, Thread() % 3 == 0)));
}

__global__ void count_kernel(const RuleArgs args) { atomicAdd(args.out, 1.0f); }

__global__ void indices_kernel(const RuleArgs args) {
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  args.out[2 * i] = static_cast<float>(block);
  args.out[2 * i + 1] = static_cast<float>(thread);
}

__global__ void write_and_read_back_kernel(const RuleArgs args) {
  if (Thread() == 0) args.out[0] = args.in[0];
  __syncthreads();
  if (Thread() == 0) args.out[args.count] = args.out[0];
}

__global__ void empty_kernel(const RuleArgs /*args*/) {}

cudaError_t LaunchOne(void (*kernel)(RuleArgs), const RuleArgs& args, int threads, size_t floats,
                      LaunchStream stream) {
  return Launch(kernel, {dim3(1), dim3(static_cast<unsigned>(threads)), floats * sizeof(float)},
                stream, args);
}

}  // namespace

cudaError_t LaunchTreeSum(const RuleArgs& args, int num_blocks, LaunchStream stream) {
  return Launch(tree_sum_kernel<true>,
                {dim3(static_cast<unsigned>(num_blocks)), dim3(kThreads), kThreads * sizeof(float)},
                stream, args);
}
cudaError_t LaunchTreeSumWithoutBarrier(const RuleArgs& args, int num_blocks, LaunchStream stream) {
  return Launch(tree_sum_kernel<false>,
                {dim3(static_cast<unsigned>(num_blocks)), dim3(kThreads), kThreads * sizeof(float)},
                stream, args);
}
cudaError_t LaunchReverse(const RuleArgs& args, bool sync, LaunchStream stream) {
  return LaunchOne(sync ? reverse_kernel<true> : reverse_kernel<false>, args, 32, 32, stream);
}
cudaError_t LaunchReadUnwritten(const RuleArgs& args, LaunchStream stream) {
  return LaunchOne(read_unwritten_kernel, args, 32, 32, stream);
}
cudaError_t LaunchOneTooMany(const RuleArgs& args, LaunchStream stream) {
  return LaunchOne(one_too_many_kernel, args, kThreads, 0, stream);
}
cudaError_t LaunchReadSharedBeyondEnd(const RuleArgs& args, LaunchStream stream) {
  return LaunchOne(read_shared_beyond_end_kernel, args, 32, 32, stream);
}
cudaError_t LaunchShuffleOfHalf(const RuleArgs& args, LaunchStream stream) {
  return LaunchOne(shuffle_of_half_kernel, args, 32, 0, stream);
}
cudaError_t LaunchBarrierOfHalf(const RuleArgs& args, LaunchStream stream) {
  return LaunchOne(barrier_of_half_kernel, args, 32, 0, stream);
}
cudaError_t LaunchMisaligned(const RuleArgs& args, LaunchStream stream) {
  return LaunchOne(misaligned_kernel, args, 1, 0, stream);
}
cudaError_t LaunchAsyncCopy(const RuleArgs& args, AsyncFault fault, LaunchStream stream) {
  switch (fault) {
    case AsyncFault::kNone:
      return LaunchOne(async_copy_kernel<AsyncFault::kNone>, args, kThreads, 4 * kThreads, stream);
    case AsyncFault::kNoWait:
      return LaunchOne(async_copy_kernel<AsyncFault::kNoWait>, args, kThreads, 4 * kThreads,
                       stream);
    case AsyncFault::kNoCommit:
      return LaunchOne(async_copy_kernel<AsyncFault::kNoCommit>, args, kThreads, 4 * kThreads,
                       stream);
    case AsyncFault::kNoBarrier:
      return LaunchOne(async_copy_kernel<AsyncFault::kNoBarrier>, args, kThreads, 4 * kThreads,
                       stream);
  }
  return cudaErrorInvalidValue;
}
cudaError_t LaunchShuffles(const RuleArgs& args, LaunchStream stream) {
  return LaunchOne(shuffles_kernel, args, 32, 0, stream);
}
cudaError_t LaunchCount(const RuleArgs& args, LaunchStream stream) {
  return Launch(count_kernel, {dim3(3), dim3(96)}, stream, args);
}
cudaError_t LaunchIndices(const RuleArgs& args, LaunchStream stream) {
  return Launch(indices_kernel, {dim3(2, 2), dim3(3, 2, 2)}, stream, args);
}
cudaError_t LaunchWriteAndReadBack(const RuleArgs& args, LaunchStream stream) {
  return LaunchOne(write_and_read_back_kernel, args, 64, 0, stream);
}
cudaError_t LaunchEmpty(dim3 grid, dim3 block, size_t shared_bytes, LaunchStream stream) {
  return Launch(empty_kernel, {grid, block, shared_bytes}, stream, RuleArgs{});
}

}  // namespace llm
