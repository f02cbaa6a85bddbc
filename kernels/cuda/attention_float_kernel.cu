// Attention over keys and values in F32, F16 and BF16.
#include "kernels/cuda/attention_kernel.cuh"

namespace llm {

cudaError_t LaunchAttentionF32(const AttentionArgs& args, LaunchStream stream) {
  return LaunchAttentionOf<DType::kF32>(args, stream);
}
cudaError_t LaunchAttentionF16(const AttentionArgs& args, LaunchStream stream) {
  return LaunchAttentionOf<DType::kF16>(args, stream);
}
cudaError_t LaunchAttentionBF16(const AttentionArgs& args, LaunchStream stream) {
  return LaunchAttentionOf<DType::kBF16>(args, stream);
}

}  // namespace llm
