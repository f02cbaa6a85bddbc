// The kernels of f32 activations times weights in blocks: one for few rows, some for many, with the
// same bits. Included by the files that instantiate them for some formats each.
#pragma once

#include "kernels/cuda/linear_split_few.cuh"
#include "kernels/cuda/linear_split_many.cuh"

namespace llm {

template <typename Block>
cudaError_t LaunchSplitBlock(const LinearBlocksArgs& args, LaunchStream stream) {
  return args.activations.rows <= SplitFew::kRows * args.experts.count
             ? LaunchSplitFew<Block>(args, stream)
             : LaunchSplitMany<Block>(args, stream);
}

}  // namespace llm
