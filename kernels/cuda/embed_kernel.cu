// A block a token.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/small_floats.cuh"

namespace llm {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) embed_kernel(const EmbedArgs args) {
  const int64_t token = static_cast<int64_t>(blockIdx.x);
  const int64_t id = TokenOf(args.token_ids[token], args.pending, args.table_rows);
  const int64_t begin = id * args.cols;
  for (int64_t col = static_cast<int64_t>(threadIdx.x); col < args.cols; col += kThreads) {
    args.out[token * args.cols + col] =
        LoadElement(args.dtype, args.table, begin + col) * args.scale;
  }
}

}  // namespace

cudaError_t LaunchEmbed(const EmbedArgs& args, LaunchStream stream) {
  return Launch(embed_kernel, {dim3(static_cast<unsigned>(args.num_tokens)), dim3(kThreads)},
                stream, args);
}

}  // namespace llm
