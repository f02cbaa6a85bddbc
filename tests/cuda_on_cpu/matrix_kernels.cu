// Goes through shared memory as the backend's kernels do.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp_reduce.cuh"
#include "tests/cuda_on_cpu/matrix_kernels.h"

namespace llm {
namespace {

struct Tiles {
  uint16_t a[16][16];
  uint16_t b[8][16];
};

template <bool kBF16>
__global__ void matrix_kernel(const MatrixArgs args) {
  Tiles* tiles = DynamicShared<Tiles>();
  const int lane = Lane();
  for (int i = lane; i < 256; i += kWarp) tiles->a[i / 16][i % 16] = args.a[i];
  for (int i = lane; i < 128; i += kWarp) tiles->b[i / 16][i % 16] = args.b[i];
  __syncwarp();
  uint32_t a[4];
  uint32_t b[2];
  LoadMatrix4(a, &tiles->a[lane % 16][lane / 16 * 8]);
  LoadMatrix2(b, &tiles->b[lane % 8][lane / 8 % 2 * 8]);
  for (int i = 0; i < 4; ++i) args.fragments[lane * 6 + i] = a[i];
  for (int i = 0; i < 2; ++i) args.fragments[lane * 6 + 4 + i] = b[i];
  float d[4];
  for (int i = 0; i < 4; ++i) d[i] = args.d[lane * 4 + i];
  if (kBF16) {
    MmaBF16(d, a, b);
  } else {
    MmaF16(d, a, b);
  }
  for (int i = 0; i < 4; ++i) args.d[lane * 4 + i] = d[i];
}

// Fragments as the PTX ISA lays them out ("Matrix Fragments for mma.m16n8k32").
__global__ void byte_matrix_kernel(const ByteMatrixArgs args) {
  const int lane = Lane();
  const int words = args.depth / 4;
  const uint32_t* low = args.a + lane / 4 * words + lane % 4;
  const uint32_t* high = low + 8 * words;
  const uint32_t* column = args.b + lane / 4 * words + lane % 4;
  int d[4];
  for (int i = 0; i < 4; ++i) d[i] = args.d[lane * 4 + i];
  if (args.depth == 32) {
    const uint32_t a[4] = {low[0], high[0], low[4], high[4]};
    const uint32_t b[2] = {column[0], column[4]};
    MmaS8(d, a, b);
  } else {
    const uint32_t a[2] = {low[0], high[0]};
    MmaS8(d, a, column[0]);
  }
  for (int i = 0; i < 4; ++i) args.d[lane * 4 + i] = d[i];
}

// The fragments are those of bytes. The emulator's own function: ptx.cuh has none, for want of use.
__global__ void e4m3_matrix_kernel(const E4M3MatrixArgs args) {
  constexpr int kWords = 8;  // of a row
  const int lane = Lane();
  const uint32_t* low = args.a + lane / 4 * kWords + lane % 4;
  const uint32_t* high = low + 8 * kWords;
  const uint32_t* column = args.b + lane / 4 * kWords + lane % 4;
  const uint32_t a[4] = {low[0], high[0], low[4], high[4]};
  const uint32_t b[2] = {column[0], column[4]};
  float d[4];
  for (int i = 0; i < 4; ++i) d[i] = args.d[lane * 4 + i];
  cuda_on_cpu::MmaE4M3(d, a, b);
  for (int i = 0; i < 4; ++i) args.d[lane * 4 + i] = d[i];
}

}  // namespace

cudaError_t LaunchE4M3Matrix(const E4M3MatrixArgs& args, cudaStream_t stream) {
  return Launch(e4m3_matrix_kernel, {dim3(1), dim3(kWarp)}, stream, args);
}

cudaError_t LaunchByteMatrix(const ByteMatrixArgs& args, cudaStream_t stream) {
  return Launch(byte_matrix_kernel, {dim3(1), dim3(kWarp)}, stream, args);
}

cudaError_t LaunchMatrix(const MatrixArgs& args, bool bf16, cudaStream_t stream) {
  return Launch(bf16 ? matrix_kernel<true> : matrix_kernel<false>,
                {dim3(1), dim3(kWarp), sizeof(Tiles)}, stream, args);
}

}  // namespace llm
