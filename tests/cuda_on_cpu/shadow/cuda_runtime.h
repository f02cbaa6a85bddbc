// CUDA C++ as ordinary C++: what a `.cu` file sees in place of the toolkit's header of this name.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/launch.h"
#include "tests/cuda_on_cpu/shadow/cuda_runtime_api.h"
#include "tests/cuda_on_cpu/warp.h"

// NOLINTBEGIN: the language's own names
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

// Read as numbers, each time from the thread that runs.
#define LLM_INDEX(type, function)                                          \
  struct type {                                                            \
    struct {                                                               \
      operator unsigned() const { return llm::cuda_on_cpu::function().x; } \
    } x;                                                                   \
    struct {                                                               \
      operator unsigned() const { return llm::cuda_on_cpu::function().y; } \
    } y;                                                                   \
    struct {                                                               \
      operator unsigned() const { return llm::cuda_on_cpu::function().z; } \
    } z;                                                                   \
  };
LLM_INDEX(LlmThreadIndex, ThreadIndex)
LLM_INDEX(LlmBlockIndex, BlockIndex)
LLM_INDEX(LlmBlockSize, BlockSize)
LLM_INDEX(LlmGridSize, GridSize)
#undef LLM_INDEX
inline constexpr LlmThreadIndex threadIdx{};
inline constexpr LlmBlockIndex blockIdx{};
inline constexpr LlmBlockSize blockDim{};
inline constexpr LlmGridSize gridDim{};

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline void __syncthreads() { llm::cuda_on_cpu::SyncThreads(); }
inline int __syncthreads_or(int predicate) { return llm::cuda_on_cpu::SyncThreadsOr(predicate); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { llm::cuda_on_cpu::SyncWarp(mask); }

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return llm::cuda_on_cpu::Shuffle(llm::cuda_on_cpu::ShuffleMode::kIndex, mask, value, lane, width);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  return llm::cuda_on_cpu::Shuffle(llm::cuda_on_cpu::ShuffleMode::kXor, mask, value, lane_mask,
                                   width);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return llm::cuda_on_cpu::Shuffle(llm::cuda_on_cpu::ShuffleMode::kUp, mask, value,
                                   static_cast<int>(delta), width);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return llm::cuda_on_cpu::Shuffle(llm::cuda_on_cpu::ShuffleMode::kDown, mask, value,
                                   static_cast<int>(delta), width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return llm::cuda_on_cpu::Ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}
inline int atomicAdd(int* address, int value) {
  return llm::cuda_on_cpu::AtomicAdd(address, value);
}
inline float atomicAdd(float* address, float value) {
  return llm::cuda_on_cpu::AtomicAdd(address, value);
}

inline unsigned long long atomicAdd(unsigned long long* address, unsigned long long value) {
  return llm::cuda_on_cpu::AtomicAdd(address, value);
}

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
// Nibble i of the selector names a byte of y:x; its top bit asks for eight copies of the byte's.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = x | static_cast<uint64_t>(y) << 32;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned name = selector >> (4 * i) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (name & 7))) & 0xff;
    if ((name & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace llm::cuda_on_cpu {

// Not instrumented: the arguments lie in the host's memory until the thread has its copy.
template <typename Args>
__attribute__((noinline, no_sanitize("thread"))) void CallKernel(const void* kernel,
                                                                 const void* args) {
  reinterpret_cast<void (*)(Args)>(const_cast<void*>(kernel))(*static_cast<const Args*>(args));
}

}  // namespace llm::cuda_on_cpu

// For kernels with one struct of arguments, which is copied when the launch is made.
template <typename Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Args),
                               const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= 4096);
  const llm::cuda_on_cpu::GridShape shape = {
      llm::cuda_on_cpu::KernelName(typeid(kernel)),
      {config->gridDim.x, config->gridDim.y, config->gridDim.z},
      {config->blockDim.x, config->blockDim.y, config->blockDim.z},
      config->dynamicSmemBytes};
  return llm::cuda_on_cpu::SubmitGrid(
      shape, config->stream,
      {reinterpret_cast<const void*>(kernel), llm::cuda_on_cpu::CallKernel<Args>, sizeof(Args)},
      &args);
}
// From then on the runtime knows what the kernel's arguments are, as it does from the kernel's
// image.
template <typename Args>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Args)) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= 4096);
  return llm::cuda_on_cpu::LoadKernel(
      attributes, llm::cuda_on_cpu::KernelName(typeid(kernel)),
      {reinterpret_cast<const void*>(kernel), llm::cuda_on_cpu::CallKernel<Args>, sizeof(Args)});
}
template <typename... Params>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Params...), cudaFuncAttribute attribute,
                                 int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
// NOLINTEND
