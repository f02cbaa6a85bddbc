// The kernels of f32 activations times weights in blocks: one for few rows, some for many, with the
// same bits. Included by the files that instantiate them for some formats each.
#pragma once

#include "kernels/cuda/linear_split_few.cuh"
#include "kernels/cuda/linear_split_many.cuh"

namespace llm {

template <typename Block>
cudaError_t LaunchSplitBlock(const LinearBlocksArgs& args, LaunchStream stream) {
  int count = 0;
  if (const cudaError_t error = CountMultiprocessors(&count); error != cudaSuccess) return error;
  // The kernel for few rows has more blocks, and more on its way in each; the weights of its other
  // tiles of rows come out of the second-level cache.
  const int few = Fills<SplitMiddle>(args, count) ? 16 : 32;
  return args.activations.rows <= few * args.experts.count ? LaunchSplitFew<Block>(args, stream)
                                                           : LaunchSplitMany<Block>(args, stream);
}

}  // namespace llm
