// Embedding rows in blocks, a thread a block.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/visit_blocks.cuh"

namespace llm {
namespace {

constexpr int kThreads = 128;

template <typename Block>
__global__ void __launch_bounds__(kThreads) embed_blocks_kernel(const EmbedArgs args) {
  const int64_t row_blocks = args.cols / Block::kBlockSize;
  const int64_t token = static_cast<int64_t>(blockIdx.x);
  const int64_t block =
      static_cast<int64_t>(blockIdx.y) * kThreads + static_cast<int64_t>(threadIdx.x);
  if (block >= row_blocks) return;
  float* out = args.out + token * args.cols + block * Block::kBlockSize;
  const int64_t id = TokenOf(args.token_ids[token], args.pending, args.table_rows);
  reinterpret_cast<const Block*>(args.table)[id * row_blocks + block].Decode(out);
  for (int i = 0; i < Block::kBlockSize; ++i) out[i] *= args.scale;
}

}  // namespace

cudaError_t LaunchEmbedBlocks(BlockFormat format, const EmbedArgs& args, LaunchStream stream) {
  return VisitBlock(format, [&](auto block) {
    const int64_t row_blocks = args.cols / decltype(block)::kBlockSize;
    const LaunchShape shape = {dim3(static_cast<unsigned>(args.num_tokens),
                                    static_cast<unsigned>((row_blocks + kThreads - 1) / kThreads)),
                               dim3(kThreads)};
    return Launch(embed_blocks_kernel<decltype(block)>, shape, stream, args);
  });
}

}  // namespace llm
