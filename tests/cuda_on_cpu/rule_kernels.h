// Small kernels that keep or break one rule each.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/launch_stream.h"

namespace llm {

struct RuleArgs {
  const float* in;
  float* out;
  int count;
};

// out[i] = the sum of block i's part of in[count], by a tree in shared memory.
cudaError_t LaunchTreeSum(const RuleArgs& args, int num_blocks, LaunchStream stream);
// The same without the barrier between the steps of the tree.
cudaError_t LaunchTreeSumWithoutBarrier(const RuleArgs& args, int num_blocks, LaunchStream stream);
// out[i] = in[31 - i] through shared memory, with __syncwarp in between or not.
cudaError_t LaunchReverse(const RuleArgs& args, bool sync, LaunchStream stream);
// Reads what no thread wrote.
cudaError_t LaunchReadUnwritten(const RuleArgs& args, LaunchStream stream);
// out[i] = in[i] for i <= count.
cudaError_t LaunchOneTooMany(const RuleArgs& args, LaunchStream stream);
cudaError_t LaunchReadSharedBeyondEnd(const RuleArgs& args, LaunchStream stream);
// Half of the threads leave before the shuffle, or wait elsewhere.
cudaError_t LaunchShuffleOfHalf(const RuleArgs& args, LaunchStream stream);
cudaError_t LaunchBarrierOfHalf(const RuleArgs& args, LaunchStream stream);
// A float4 from in + 1.
cudaError_t LaunchMisaligned(const RuleArgs& args, LaunchStream stream);
// out[i] = in[i] by cp.async.
enum class AsyncFault { kNone, kNoWait, kNoCommit, kNoBarrier };
cudaError_t LaunchAsyncCopy(const RuleArgs& args, AsyncFault fault, LaunchStream stream);
// out[lane] = what a lane gets: shuffles up by 3 of 16, down by 3, xor 5, from lane 7; then a vote.
cudaError_t LaunchShuffles(const RuleArgs& args, LaunchStream stream);
// out[0] += 1 by every thread of 3 blocks of 96.
cudaError_t LaunchCount(const RuleArgs& args, LaunchStream stream);
// out[2 i] = block, out[2 i + 1] = thread of the i-th thread of a grid (2, 2) of blocks (3, 2, 2).
cudaError_t LaunchIndices(const RuleArgs& args, LaunchStream stream);
// out[0] = in[0], a barrier, out[count] = out[0].
cudaError_t LaunchWriteAndReadBack(const RuleArgs& args, LaunchStream stream);
cudaError_t LaunchEmpty(dim3 grid, dim3 block, size_t shared_bytes, LaunchStream stream);

}  // namespace llm
