// Weights in blocks of 256 integers.
#include "kernels/cuda/linear_int_kernel.cuh"
#include "kernels/cuda/linear_split_kernel.cuh"

namespace llm {

template cudaError_t LaunchIntBlock<Q2_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q3_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q4_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q5_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<Q6_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<IQ4_XS>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<TQ1_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<TQ2_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q2_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q3_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q4_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q5_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<Q6_K>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ4_XS>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<TQ1_0>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<TQ2_0>(const LinearBlocksArgs&, LaunchStream);

}  // namespace llm
