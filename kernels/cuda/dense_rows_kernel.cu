// Around cuBLASLt's products: operands of the library's types in, results out. Each is one pass
// over its array, 16 bytes a thread where the types let it.
#include "kernels/cuda/dense_ops.h"
#include "kernels/cuda/element_grid.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kRun = 8;          // columns that a thread rounds: 16 bytes of results
constexpr int kBlockCodes = 64;  // of F8_E4M3 and Q8_F32
constexpr int kBlockBytes = 68;
constexpr int kCodeChunk = 16;

template <bool kBF16>
__device__ __forceinline__ uint32_t PackPair(float low, float high) {
  return kBF16 ? PackBF16(low, high) : PackF16(low, high);
}

template <bool kBF16>
__global__ void __launch_bounds__(kThreads) round_rows_kernel(const RoundRowsArgs args) {
  const int64_t i =
      (static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int64_t>(threadIdx.x)) * kRun;
  if (i >= args.count) return;
  const float4* x = reinterpret_cast<const float4*>(args.values + i);
  const float4 low = x[0];
  const float4 high = x[1];
  *reinterpret_cast<uint4*>(args.out + i) = {
      PackPair<kBF16>(low.x, low.y), PackPair<kBF16>(low.z, low.w), PackPair<kBF16>(high.x, high.y),
      PackPair<kBF16>(high.z, high.w)};
}

__device__ __forceinline__ float ValueAt(const Activations& a, int64_t i) {
  if (a.values != nullptr) return a.values[i];
  return static_cast<float>(a.quants[i]) * a.scales[i / kActivationGroup];
}

// A block a row, twice over it.
template <bool kE4M3>
__global__ void __launch_bounds__(kThreads) code_rows_kernel(const CodeRowsArgs args) {
  constexpr float kLargest = kE4M3 ? 448.0f : 127.0f;
  float* scratch = DynamicShared<float>();  // [kWarps]
  const int64_t cols = args.activations.cols;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * cols;
  float amax = 0;
  bool finite = true;
  for (int64_t col = static_cast<int64_t>(threadIdx.x); col < cols; col += kThreads) {
    const float x = fabsf(ValueAt(args.activations, begin + col));
    finite = finite && IsFinite(x);
    amax = fmaxf(amax, x);
  }
  finite = __all_sync(kAllLanes, finite) != 0;
  amax = WarpMax(amax);
  if (Lane() == 0) scratch[WarpIndex()] = finite ? amax : __uint_as_float(0x7f800000u);
  __syncthreads();
  for (int i = 0; i < kWarps; ++i) amax = fmaxf(amax, scratch[i]);
  const float inverse = kLargest / amax;
  const bool empty = !IsFinite(amax) || !IsFinite(inverse);
  for (int64_t col = static_cast<int64_t>(threadIdx.x); col < cols; col += kThreads) {
    const float x = empty ? 0.0f : ValueAt(args.activations, begin + col) * inverse;
    args.codes[begin + col] =
        kE4M3 ? F32ToF8E4M3(x) : static_cast<uint8_t>(static_cast<int8_t>(rintf(x)));
  }
  if (threadIdx.x != 0) return;
  const float scale = empty ? 0.0f : amax / kLargest;
  args.scales[blockIdx.x] = IsFinite(amax) ? scale : __uint_as_float(0x7fc00000u);
}

// Blocks lie 4-byte aligned: loads are words.
__global__ void __launch_bounds__(kThreads) codes_of_blocks_kernel(const CodesOfBlocksArgs args) {
  const int64_t col = Element() * kCodeChunk;
  if (col >= args.cols) return;
  const int64_t output = static_cast<int64_t>(blockIdx.x);
  const std::byte* block =
      args.blocks + (output * (args.cols / kBlockCodes) + col / kBlockCodes) * kBlockBytes;
  const uint32_t* words =
      reinterpret_cast<const uint32_t*>(block + sizeof(float) + col % kBlockCodes);
  *reinterpret_cast<uint4*>(args.codes + output * args.cols + col) = {words[0], words[1], words[2],
                                                                      words[3]};
  if (col == 0) args.scales[output] = *reinterpret_cast<const float*>(block);
}

__global__ void __launch_bounds__(kElementThreads) scale_sums_kernel(const ScaleSumsArgs args) {
  const int64_t output = Element();
  if (output >= args.outputs) return;
  const int64_t row = static_cast<int64_t>(blockIdx.x);
  float* at = args.out + row * args.out_stride + output;
  const float sum =
      args.integers ? static_cast<float>(static_cast<int>(__float_as_uint(*at))) : *at;
  const float bias = args.bias != nullptr ? args.bias[output] : 0.0f;
  *at = sum * (args.row_scales[row] * args.output_scales[output]) + bias;
}

template <bool kBF16>
cudaError_t LaunchRoundRows(const RoundRowsArgs& args, LaunchStream stream) {
  const auto blocks = static_cast<unsigned>((args.count / kRun + kThreads - 1) / kThreads);
  return Launch(round_rows_kernel<kBF16>, {dim3(blocks), dim3(kThreads)}, stream, args);
}

template <bool kE4M3>
cudaError_t LaunchCodeRows(const CodeRowsArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>(args.activations.rows));
  return Launch(code_rows_kernel<kE4M3>, {grid, dim3(kThreads), kWarps * sizeof(float)}, stream,
                args);
}

}  // namespace

cudaError_t LaunchRoundRowsToBF16(const RoundRowsArgs& args, LaunchStream stream) {
  return LaunchRoundRows<true>(args, stream);
}

cudaError_t LaunchRoundRowsToF16(const RoundRowsArgs& args, LaunchStream stream) {
  return LaunchRoundRows<false>(args, stream);
}

cudaError_t LaunchCodeRowsE4M3(const CodeRowsArgs& args, LaunchStream stream) {
  return LaunchCodeRows<true>(args, stream);
}

cudaError_t LaunchCodeRowsInt8(const CodeRowsArgs& args, LaunchStream stream) {
  return LaunchCodeRows<false>(args, stream);
}

cudaError_t LaunchCodesOfBlocks(const CodesOfBlocksArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>(args.outputs), ElementBlocks(args.cols / kCodeChunk));
  return Launch(codes_of_blocks_kernel, {grid, dim3(kElementThreads)}, stream, args);
}

cudaError_t LaunchScaleSums(const ScaleSumsArgs& args, LaunchStream stream) {
  const dim3 grid(static_cast<unsigned>(args.rows), ElementBlocks(args.outputs));
  return Launch(scale_sums_kernel, {grid, dim3(kElementThreads)}, stream, args);
}

}  // namespace llm
