// Attention over paged keys and values on tensor cores: rows are (query token, head) of a kv head.
//
// Keys and values come in slabs (attention_slab.cuh), a strip of 32 keys at a time: the products of
// a strip, its softmax, and its weighted values are added in one order, whatever else the block
// has, so that the rows' bits show neither batch nor chunk. Splits of 512 keys are parts, merged
// in ascending order by the block itself or, when there are few rows, by attention_merge_kernel.
#pragma once

#include "kernels/cuda/attention_few_kernel.cuh"
#include "kernels/cuda/attention_rows_kernel.cuh"
#include "kernels/cuda/attention_slices_kernel.cuh"

namespace llm {

// 32 rows share what comes from memory where there is shared memory for their queries, and blocks
// enough without splits of their own.
template <DType kType>
cudaError_t LaunchFourSlices(const AttentionArgs& args, LaunchStream stream) {
  using Tall = SlicesShape<2, 5, 4, 1>;
  int most = 0;
  if (const cudaError_t error = MostSharedBytes(&most); error != cudaSuccess) return error;
  const size_t bytes = SlicesShared<kType, Tall>::Bytes(args.kv.head_dim);
  if (args.partials == nullptr && bytes <= static_cast<size_t>(most)) {
    return LaunchSlices<kType, Tall>(args, stream);
  }
  return LaunchSlices<kType, SlicesShape<1, 5, 4, 2>>(args, stream);
}

// Sequences with few rows each, as those that decode, have blocks of 16 of them. F32, which is
// three bf16, has registers for more than 128 dimensions only where four warps share them, and
// shared memory for fewer rows, as BF16 has, of which no part of a query stays in registers.
template <DType kType>
cudaError_t LaunchAttentionOf(const AttentionArgs& args, LaunchStream stream) {
  const int64_t group = args.num_heads / args.kv.num_kv_heads;
  const bool few = args.num_tokens * group <= int64_t{16} * args.num_sequences;
  const int two_warps_dims = kType == DType::kF32 ? kSlabDims : 2 * kSlabDims;
  if (args.kv.head_dim > two_warps_dims) return LaunchFourSlices<kType>(args, stream);
  if constexpr (kType != DType::kF32) {
    if (args.kv.head_dim > kSlabDims) {
      return few ? LaunchSlices<kType, SlicesShape<1, 2, 2, 4>>(args, stream)
                 : LaunchSlices<kType, SlicesShape<2, 2, 2, 2>>(args, stream);
    }
  }
  if (few) return LaunchFewRows<kType>(args, stream);
  constexpr int kTiles = kMeetsF16<kType> ? 8 : kType == DType::kBF16 ? 4 : 2;
  return LaunchManyRows<kType, kTiles>(args, stream);
}

}  // namespace llm
