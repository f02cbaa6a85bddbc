// The kernels of weights in blocks, each instantiated in one of linear_blocks_*_kernel.cu.
#pragma once

#include "kernels/cuda/device_ops.h"

namespace llm {

#define LLM_BLOCK_FORMAT(name, header) struct name;
#include "kernels/cuda/block_formats.def"
#undef LLM_BLOCK_FORMAT
struct BF16Run;  // plain elements, 32 at a time
struct F16Run;

// int8 activations: not of floats.
template <typename Block>
cudaError_t LaunchIntBlock(const LinearBlocksArgs& args, LaunchStream stream);

// f32 activations.
template <typename Block>
cudaError_t LaunchSplitBlock(const LinearBlocksArgs& args, LaunchStream stream);

}  // namespace llm
