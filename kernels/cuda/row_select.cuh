// Searches through a row of logits by one block: the id or the cut at which a running sum of masses
// reaches a target. Masses are integers, so that neither threads nor their order show in a result.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/warp_reduce.cuh"
#include "kernels/sample_math.h"

namespace llm {

// A block a row: enough loads on their way from one multiprocessor, 64 registers a thread.
inline constexpr int kSelectThreads = 1024;
inline constexpr int kSelectWarps = kSelectThreads / kWarp;
inline constexpr int kSelectBins = 2 * kSelectThreads;  // 11 bits: three levels cover a key
inline constexpr int kSelectList = 4096;

using Mass = unsigned long long;  // as atomicAdd wants it

// An id and its key, largest logit first, the lower id at a tie.
__device__ __forceinline__ Mass Ranked(float logit, int id) {
  return static_cast<Mass>(OrderedKey(logit)) << 32 | (0xffffffffu - static_cast<unsigned>(id));
}
__device__ __forceinline__ int IdOf(Mass ranked) {
  return static_cast<int>(0xffffffffu - static_cast<unsigned>(ranked));
}
__device__ __forceinline__ float LogitOf(Mass ranked) {
  return LogitOfKey(static_cast<uint32_t>(ranked >> 32));
}

struct SelectScratch {
  Mass bins[kSelectBins];
  Mass list[kSelectList];  // ranked ids, in no order
  Mass warps[kSelectWarps];
  Mass before;  // of the bin that was found
  int bin;
  int list_size;  // that there would be
};

struct SelectRow {
  const float* logits;
  int cols;
};

// Spreads a row over the bins by distance from its maximum: keys would put most of it into some
// forty. Monotone: whatever lies closer to the maximum is in no later bin.
struct Spread {
  float max;
  float scale;  // bins for a difference of 1; finite
  __device__ __forceinline__ int Bin(float logit) const {
    return static_cast<int>(fminf((max - logit) * scale, static_cast<float>(kSelectBins - 1)));
  }
};

__device__ __forceinline__ Mass WarpSumMass(Mass x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(kAllLanes, x, offset);
  return x;
}

// The largest of one ranked id a thread; every thread has it.
__device__ __forceinline__ Mass BlockBest(Mass best, SelectScratch* scratch) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Mass other = __shfl_xor_sync(kAllLanes, best, offset);
    if (other > best) best = other;
  }
  if (Lane() == 0) scratch->warps[WarpIndex()] = best;
  __syncthreads();
  best = scratch->warps[0];
  for (int i = 1; i < kSelectWarps; ++i) best = max(best, scratch->warps[i]);
  __syncthreads();  // the scratch has been read
  return best;
}

__device__ __forceinline__ void ClearBins(SelectScratch* scratch) {
  for (int i = static_cast<int>(threadIdx.x); i < kSelectBins; i += kSelectThreads) {
    scratch->bins[i] = 0;
  }
  __syncthreads();
}

// The first bin at which the running sum reaches target_of(sum of all), which is not 0; `before`
// becomes the sum of those before it.
template <typename TargetOf>
__device__ __forceinline__ int FindBin(const TargetOf& target_of, SelectScratch* scratch,
                                       Mass* target, Mass* before) {
  __syncthreads();  // the bins are full
  const int thread = static_cast<int>(threadIdx.x);
  const Mass first = scratch->bins[2 * thread], second = scratch->bins[2 * thread + 1];
  Mass sum = first + second;  // becomes that of all lanes up to this one
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const Mass other = __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(offset));
    if (Lane() >= offset) sum += other;
  }
  if (Lane() == kWarp - 1) scratch->warps[WarpIndex()] = sum;
  __syncthreads();
  Mass warps_before = 0, total = 0;
  for (int i = 0; i < kSelectWarps; ++i) {
    if (i == WarpIndex()) warps_before = total;
    total += scratch->warps[i];
  }
  *target = target_of(total);
  const Mass end = warps_before + sum, middle = end - second, begin = middle - first;
  if (begin < *target && middle >= *target) {
    scratch->bin = 2 * thread;
    scratch->before = begin;
  } else if (middle < *target && end >= *target) {
    scratch->bin = 2 * thread + 1;
    scratch->before = middle;
  }
  __syncthreads();
  *before = scratch->before;
  const int bin = scratch->bin;
  __syncthreads();  // the scratch has been read
  return bin;
}

// The first id at which the running sum of mass_of(logit, id), in id order, exceeds
// target_of(sum of all), which it does. Each round narrows the range to a warp's part of it.
template <typename MassOf, typename TargetOf>
__device__ __forceinline__ int FindId(const SelectRow& row, const MassOf& mass_of,
                                      const TargetOf& target_of, SelectScratch* scratch) {
  int begin = 0, end = row.cols;
  Mass target = 0;
  for (bool first = true;; first = false) {
    const int part = (end - begin + kSelectWarps - 1) / kSelectWarps;
    const int part_begin = begin + WarpIndex() * part;
    const int part_end = min(part_begin + part, end);
    Mass sum = 0;
#pragma unroll 4
    for (int i = part_begin + Lane(); i < part_end; i += kWarp) sum += mass_of(row.logits[i], i);
    sum = WarpSumMass(sum);
    if (Lane() == 0) scratch->warps[WarpIndex()] = sum;
    __syncthreads();
    if (first) {
      Mass total = 0;
      for (int i = 0; i < kSelectWarps; ++i) total += scratch->warps[i];
      target = target_of(total);
    }
    int found = 0;
    while (found < kSelectWarps - 1 && scratch->warps[found] <= target) {
      target -= scratch->warps[found++];
    }
    __syncthreads();  // the sums have been read
    begin = min(begin + found * part, end - 1);
    end = min(begin + part, end);
    if (part == 1) return begin;
  }
}

// Calls visit(logit, id) for each id of the row. Loads of four ids are on their way at a time: with
// one, a multiprocessor would wait for memory most of a pass.
template <typename Visit>
__device__ __forceinline__ void VisitRow(const SelectRow& row, const Visit& visit) {
  constexpr int kAtOnce = 4;
  for (int begin = static_cast<int>(threadIdx.x); begin < row.cols;
       begin += kAtOnce * kSelectThreads) {
    float logits[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      logits[i] = row.logits[min(begin + i * kSelectThreads, row.cols - 1)];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int id = begin + i * kSelectThreads;
      if (id < row.cols) visit(logits[i], id);
    }
  }
}

// The same, or for those that are listed.
template <typename Visit>
__device__ __forceinline__ void VisitListed(const SelectRow& row, bool listed,
                                            const SelectScratch& scratch, const Visit& visit) {
  if (!listed) return VisitRow(row, visit);
  for (int i = static_cast<int>(threadIdx.x); i < scratch.list_size; i += kSelectThreads) {
    visit(LogitOf(scratch.list[i]), IdOf(scratch.list[i]));
  }
}

// Lists the ids for which wanted(logit, id). False: they are too many, and none can be read.
template <typename Wanted>
__device__ __forceinline__ bool MakeList(const SelectRow& row, const Wanted& wanted,
                                         SelectScratch* scratch) {
  if (threadIdx.x == 0) scratch->list_size = 0;
  __syncthreads();
  VisitRow(row, [&](float logit, int id) {
    if (!wanted(logit, id)) return;
    const int place = atomicAdd(&scratch->list_size, 1);
    if (place < kSelectList) scratch->list[place] = Ranked(logit, id);
  });
  __syncthreads();
  return scratch->list_size <= kSelectList;
}

// Keeps ids with a key above `key`, and up to `last_tie` those that have it.
inline constexpr int kNoTieLeftOut = 0x7fffffff;
struct DeviceCut {
  uint32_t key = 0;
  int last_tie = kNoTieLeftOut;
  __device__ __forceinline__ bool Keeps(float logit, int id) const {
    const uint32_t its = OrderedKey(logit);
    return its > key || (its == key && id <= last_tie);
  }
};

// Cuts through one order are nested: what both keep.
__device__ __forceinline__ DeviceCut Stricter(const DeviceCut& a, const DeviceCut& b) {
  if (a.key != b.key) return a.key > b.key ? a : b;
  return a.last_tie < b.last_tie ? a : b;
}

// Masses: each id is one,
struct CountMass {
  __device__ __forceinline__ Mass Of(float /*logit*/) const { return 1; }
  __device__ __forceinline__ Mass operator()(float /*logit*/, int /*id*/) const { return 1; }
};
// or has its weight, where it is kept.
struct WeightMass {
  Weigher weigher;
  DeviceCut kept;
  __device__ __forceinline__ Mass Of(float logit) const { return WholeWeight(weigher(logit)); }
  __device__ __forceinline__ Mass operator()(float logit, int id) const {
    return kept.Keeps(logit, id) ? Of(logit) : 0;
  }
};

// The cut that keeps the fewest, largest first, whose masses reach target_of(sum of all). Equal
// keys have equal masses, or none. One pass spreads the row over bins, one lists those in the bin
// that decides, and radix selection by key goes on in the list.
template <typename MassOf, typename TargetOf>
__device__ __forceinline__ DeviceCut FindCut(const SelectRow& row, const Spread& spread,
                                             const MassOf& mass_of, const TargetOf& target_of,
                                             SelectScratch* scratch) {
  ClearBins(scratch);
  VisitRow(row, [&](float logit, int id) {
    const Mass mass = mass_of(logit, id);
    if (mass != 0) atomicAdd(&scratch->bins[spread.Bin(logit)], mass);
  });
  Mass target = 0, before = 0;
  const int bin = FindBin(target_of, scratch, &target, &before);
  const bool listed = MakeList(
      row, [&](float logit, int id) { return spread.Bin(logit) == bin && mass_of(logit, id) != 0; },
      scratch);
  uint32_t prefix = 0;  // of the complement of the key: ascending as the sums run
  int shift = 21;
  for (int bits = 11;;) {
    target -= before;
    ClearBins(scratch);
    VisitListed(row, listed, *scratch, [&](float logit, int id) {
      const uint32_t key = ~OrderedKey(logit);
      if (shift + bits < 32 && key >> (shift + bits) != prefix) return;
      if (!listed && spread.Bin(logit) != bin) return;
      const Mass mass = mass_of(logit, id);
      if (mass != 0) atomicAdd(&scratch->bins[key >> shift & ((1u << bits) - 1)], mass);
    });
    const Mass left = target;
    const int found = FindBin([left](Mass) { return left; }, scratch, &target, &before);
    prefix = prefix << bits | static_cast<uint32_t>(found);
    if (shift == 0) break;
    bits = shift == 10 ? 10 : 11;
    shift = shift == 21 ? 10 : 0;
  }
  // The last level has a bin for each key. Not all ties are kept where fewer reach the target.
  const uint32_t key = ~prefix;
  const Mass one = mass_of.Of(LogitOfKey(key));
  const Mass needed = (target - before + one - 1) / one;
  const bool all = needed * one >= scratch->bins[prefix & 1023];
  __syncthreads();  // the bin has been read
  if (all) return {key, kNoTieLeftOut};
  const auto is_tie = [&](float logit, int id) -> Mass {
    return OrderedKey(logit) == key && mass_of(logit, id) != 0 ? 1 : 0;
  };
  return {key, FindId(
                   row, is_tie, [needed](Mass) { return needed - 1; }, scratch)};
}

}  // namespace llm
