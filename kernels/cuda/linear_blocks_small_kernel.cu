// Weights in blocks of 32 to 128 integers.
#include "kernels/cuda/linear_int_kernel.cuh"
#include "kernels/cuda/linear_split_kernel.cuh"

namespace llm {

template cudaError_t LaunchIntBlock<Q4_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q4_1>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q5_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q5_1>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q8_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<IQ4_NL>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<MXFP4>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<NVFP4>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q1_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q4_Z>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q8_Z>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<NVFP4_F32>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q8_F32>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q4_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q4_1>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q5_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q5_1>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q8_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ4_NL>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<MXFP4>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<NVFP4>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q1_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q4_Z>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q8_Z>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<NVFP4_F32>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q8_F32>(const LinearBlocksArgs&, LaunchStream);

}  // namespace llm
