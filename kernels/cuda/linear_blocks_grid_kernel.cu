// Weights that are points of grids.
#include "kernels/cuda/linear_int_kernel.cuh"
#include "kernels/cuda/linear_split_kernel.cuh"

namespace llm {

template cudaError_t LaunchIntBlock<IQ2_XXS>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<IQ2_XS>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<IQ3_XXS>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<IQ1_S>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<IQ3_S>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<IQ2_S>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchIntBlock<IQ1_M>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ2_XXS>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ2_XS>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ3_XXS>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ1_S>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ3_S>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ2_S>(const LinearBlocksArgs&, LaunchStream);
template cudaError_t LaunchSplitBlock<IQ1_M>(const LinearBlocksArgs&, LaunchStream);

}  // namespace llm
