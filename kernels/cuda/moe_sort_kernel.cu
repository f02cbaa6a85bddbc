// Sorts the (token, choice) pairs of a step by expert, equal ones in their order, in one pass: a
// block has 4,096 pairs, and counts those of the blocks before again rather than wait for them.
#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kSortWarps = 32;
constexpr int kSortThreads = kSortWarps * kWarp;
constexpr int kPairsOfLane = 4;
constexpr int kPairsOfWarp = kPairsOfLane * kWarp;
constexpr int kPairsOfBlock = kSortWarps * kPairsOfWarp;
constexpr int kNameThreads = 128;

struct SortShared {
  int* before;       // [experts]: pairs of each in blocks before
  int* begin;        // [experts]: pairs of each, then of lower ones
  uint16_t* counts;  // [kSortWarps, experts]: of each warp, then of the block's warps before

  static __device__ __forceinline__ SortShared View(int experts) {
    int* before = DynamicShared<int>();
    int* begin = before + experts;
    return {before, begin, reinterpret_cast<uint16_t*>(begin + experts)};
  }
  static size_t Bytes(int experts) {
    return static_cast<size_t>(experts) * (2 * sizeof(int) + kSortWarps * sizeof(uint16_t));
  }
};

// The lanes that have the same expert; of one that has none, whatever.
__device__ __forceinline__ unsigned LanesOf(int expert, bool there, int experts) {
  unsigned same = __ballot_sync(kAllLanes, there);
  for (int bit = 1; bit < experts; bit *= 2) {
    const bool set = (expert & bit) != 0;
    const unsigned all = __ballot_sync(kAllLanes, set);
    same &= set ? all : ~all;
  }
  return same;
}

__device__ __forceinline__ void CountPairs(const MoeRouteArgs& args, int num_pairs, int block_begin,
                                           const SortShared& shared) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < num_pairs; i += kSortThreads) {
    const int expert = args.rows[i];
    atomicAdd(&shared.begin[expert], 1);
    if (i < block_begin) atomicAdd(&shared.before[expert], 1);
  }
}

// Counts become the places where each expert begins; by one warp.
__device__ __forceinline__ void AddUp(int experts, int* begin) {
  int sum = 0;
  for (int first = 0; first < experts; first += kWarp) {
    const int e = first + Lane();
    const int count = e < experts ? begin[e] : 0;
    int upto = count;
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int other = __shfl_up_sync(kAllLanes, upto, static_cast<unsigned>(offset));
      if (Lane() >= offset) upto += other;
    }
    if (e < experts) begin[e] = sum + upto - count;
    sum += __shfl_sync(kAllLanes, upto, kWarp - 1);
  }
}

// row_tokens[row] becomes the pair that the row is.
__global__ void __launch_bounds__(kSortThreads, 1) moe_sort_kernel(const MoeRouteArgs args) {
  const int experts = args.num_experts;
  const int num_pairs = static_cast<int>(args.num_tokens) * args.experts_per_token;
  const int block_begin = static_cast<int>(blockIdx.x) * kPairsOfBlock;
  const SortShared shared = SortShared::View(experts);
  for (int i = static_cast<int>(threadIdx.x); i < experts; i += kSortThreads) {
    shared.before[i] = shared.begin[i] = 0;
  }
  for (int i = static_cast<int>(threadIdx.x); i < kSortWarps * experts; i += kSortThreads) {
    shared.counts[i] = 0;
  }
  __syncthreads();  // zeros are there
  CountPairs(args, num_pairs, block_begin, shared);
  uint16_t* counts = shared.counts + WarpIndex() * experts;
  const int first = block_begin + WarpIndex() * kPairsOfWarp + Lane();
  int expert[kPairsOfLane];
  int place[kPairsOfLane];  // among those of the warp that have the expert
#pragma unroll
  for (int j = 0; j < kPairsOfLane; ++j) {
    const bool there = first + j * kWarp < num_pairs;
    expert[j] = there ? args.rows[first + j * kWarp] : 0;
    const unsigned same = LanesOf(expert[j], there, experts);
    const int lower = __popc(same & ((1u << Lane()) - 1));
    const int before = counts[expert[j]];
    place[j] = before + lower;
    __syncwarp();
    if (there && lower == 0) counts[expert[j]] = static_cast<uint16_t>(before + __popc(same));
    __syncwarp();
  }
  __syncthreads();  // all pairs are counted
  if (WarpIndex() == 0) AddUp(experts, shared.begin);
  for (int e = static_cast<int>(threadIdx.x); e < experts; e += kSortThreads) {
    int sum = 0;
    for (int warp = 0; warp < kSortWarps; ++warp) {
      const int count = shared.counts[warp * experts + e];
      shared.counts[warp * experts + e] = static_cast<uint16_t>(sum);
      sum += count;
    }
  }
  __syncthreads();  // and added up
  if (blockIdx.x == 0) {
    for (int e = static_cast<int>(threadIdx.x); e <= experts; e += kSortThreads) {
      args.expert_begin[e] = e < experts ? shared.begin[e] : num_pairs;
    }
  }
#pragma unroll
  for (int j = 0; j < kPairsOfLane; ++j) {
    const int pair = first + j * kWarp;
    if (pair >= num_pairs) continue;
    const int e = expert[j];
    args.row_tokens[shared.begin[e] + shared.before[e] + counts[e] + place[j]] = pair;
  }
}

// Pairs become tokens, and each pair learns its row.
__global__ void __launch_bounds__(kNameThreads) moe_name_rows_kernel(const MoeRouteArgs args) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kNameThreads + threadIdx.x;
  if (row >= args.num_tokens * args.experts_per_token) return;
  const int pair = args.row_tokens[row];
  args.rows[pair] = static_cast<int32_t>(row);
  args.row_tokens[row] = pair / args.experts_per_token;
}

unsigned Blocks(int64_t count, int size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

}  // namespace

cudaError_t LaunchMoeSort(const MoeRouteArgs& args, LaunchStream stream) {
  const int64_t rows = args.num_tokens * args.experts_per_token;
  const cudaError_t error = Launch(
      moe_sort_kernel,
      {dim3(Blocks(rows, kPairsOfBlock)), dim3(kSortThreads), SortShared::Bytes(args.num_experts)},
      stream, args);
  if (error != cudaSuccess) return error;
  return Launch(moe_name_rows_kernel, {dim3(Blocks(rows, kNameThreads)), dim3(kNameThreads)},
                stream, args);
}

}  // namespace llm
