// Attention over keys and values with scales: F8_E4M3, I8 and I4.
#include "kernels/cuda/attention_kernel.cuh"

namespace llm {

cudaError_t LaunchAttentionF8E4M3(const AttentionArgs& args, LaunchStream stream) {
  return LaunchAttentionOf<DType::kF8E4M3>(args, stream);
}
cudaError_t LaunchAttentionI8(const AttentionArgs& args, LaunchStream stream) {
  return LaunchAttentionOf<DType::kI8>(args, stream);
}
cudaError_t LaunchAttentionI4(const AttentionArgs& args, LaunchStream stream) {
  return LaunchAttentionOf<DType::kI4>(args, stream);
}

}  // namespace llm
