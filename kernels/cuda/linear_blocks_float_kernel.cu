// Weights that are floats, whole or in blocks.
#include "kernels/cuda/linear_split_kernel.cuh"

namespace llm {

template cudaError_t LaunchSplitBlock<F8_E4M3>(const LinearBlocksArgs&, cudaStream_t);
template cudaError_t LaunchSplitBlock<MXFP8>(const LinearBlocksArgs&, cudaStream_t);
template cudaError_t LaunchSplitBlock<BF16_24>(const LinearBlocksArgs&, cudaStream_t);
template cudaError_t LaunchSplitBlock<BF16Run>(const LinearBlocksArgs&, cudaStream_t);
template cudaError_t LaunchSplitBlock<F16Run>(const LinearBlocksArgs&, cudaStream_t);

}  // namespace llm
