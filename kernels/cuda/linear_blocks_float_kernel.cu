// Weights that are floats, whole or in blocks.
#include "kernels/cuda/linear_split_kernel.cuh"

namespace llm {

template cudaError_t LaunchSplitBlock<F8_E4M3>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<MXFP8>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<BF16_24>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<BF16Run>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<F16Run>(const LinearBlocksArgs&, LaunchStream);

}  // namespace llm
