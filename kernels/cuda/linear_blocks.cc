// From a format to its kernel.
#include "kernels/cuda/linear_blocks.h"

namespace llm {

cudaError_t LaunchLinearInt(BlockFormat format, const LinearBlocksArgs& args, LaunchStream stream) {
  switch (format) {
#define LLM_BLOCK_FORMAT(name, header) \
  case BlockFormat::k##name:           \
    return LaunchIntBlock<name>(args, stream);
#define LLM_FLOAT_BLOCK_FORMAT(name, header)
#include "kernels/cuda/block_formats.def"
#undef LLM_BLOCK_FORMAT
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchLinearBlocks(BlockFormat format, const LinearBlocksArgs& args,
                               LaunchStream stream) {
  switch (format) {
#define LLM_BLOCK_FORMAT(name, header) \
  case BlockFormat::k##name:           \
    return LaunchSplitBlock<name>(args, stream);
#include "kernels/cuda/block_formats.def"
#undef LLM_BLOCK_FORMAT
  }
  return cudaErrorInvalidValue;
}

cudaError_t LaunchLinearRuns(DType dtype, const LinearBlocksArgs& args, LaunchStream stream) {
  return dtype == DType::kF16 ? LaunchSplitBlock<F16Run>(args, stream)
                              : LaunchSplitBlock<BF16Run>(args, stream);
}

}  // namespace llm
