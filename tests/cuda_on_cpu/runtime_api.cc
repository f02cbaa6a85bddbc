// Errors, memory and launches of the emulated runtime.
#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"
#include "tests/cuda_on_cpu/launch.h"

using llm::cuda_on_cpu::DeviceMemory;
using llm::cuda_on_cpu::Gpu;
using llm::cuda_on_cpu::GridShape;
using llm::cuda_on_cpu::Queue;

namespace {

constexpr int kSharedOptinBytes = 99 * 1024;  // of sm_89 and sm_120: the least of our targets

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    default:
      return "cudaError";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return Gpu::Get().fault().c_str();
  return cudaGetErrorName(error);
}

cudaError_t cudaGetLastError() { return Gpu::Get().TakeLastError(); }

cudaError_t cudaPeekAtLastError() {
  const cudaError_t error = Gpu::Get().TakeLastError();
  return Gpu::Get().Remember(error);
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  LLM_ENTER_CALL();
  void* allocated =
      bytes == 0 ? nullptr : DeviceMemory::Get().Allocate(bytes, Gpu::current_device());
  if (allocated == nullptr && bytes > 0) return Gpu::Get().Remember(cudaErrorMemoryAllocation);
  *memory = allocated;
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  LLM_ENTER_CALL();
  if (memory == nullptr) return cudaSuccess;
  Gpu::Get().RunAll();
  return Gpu::Get().Remember(DeviceMemory::Get().Free(memory) ? cudaSuccess
                                                              : cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned /*flags*/) {
  LLM_ENTER_CALL();
  void* allocated = DeviceMemory::Get().AllocatePinned(bytes);
  if (allocated == nullptr) return Gpu::Get().Remember(cudaErrorMemoryAllocation);
  *memory = allocated;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  LLM_ENTER_CALL();
  if (memory == nullptr) return cudaSuccess;
  Gpu::Get().RunAll();
  return Gpu::Get().Remember(DeviceMemory::Get().FreePinned(memory) ? cudaSuccess
                                                                    : cudaErrorInvalidValue);
}

namespace {

bool Reaches(const void* address, size_t bytes, bool on_device) {
  const DeviceMemory& memory = DeviceMemory::Get();
  return on_device ? memory.IsDevice(address) && memory.Contains(address, bytes)
                   : !memory.IsDevice(address);
}

}  // namespace

// Between devices too, through the host where they are no peers. From pageable memory the source is
// taken before the call returns, to pageable memory the call waits; pinned memory is read and
// written when the stream comes to it.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  Queue* queue = gpu.Find(stream);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    from_device = DeviceMemory::Get().IsDevice(from);
    to_device = DeviceMemory::Get().IsDevice(to);
  }
  if (!Reaches(from, bytes, from_device) || !Reaches(to, bytes, to_device)) {
    return gpu.Remember(cudaErrorInvalidValue);
  }
  if (!to_device) gpu.CountToHost(bytes);
  const bool pageable_source = !from_device && !DeviceMemory::Get().Contains(from, bytes);
  const bool pageable_target = !to_device && !DeviceMemory::Get().Contains(to, bytes);
  if (queue->capture != nullptr && (pageable_source || pageable_target)) {
    return gpu.Invalidate(queue, cudaErrorStreamCaptureUnsupported);  // the call would wait
  }
  if (pageable_source) {
    const auto* first = static_cast<const std::byte*>(from);
    auto taken = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    gpu.Submit(queue, [to, taken] {
      const DeviceMemory::Window window;
      std::memcpy(to, taken->data(), taken->size());
    });
  } else {
    const cudaError_t error = gpu.Submit(queue, [to, from, bytes] {
      const DeviceMemory::Window window;
      std::memcpy(to, from, bytes);
    });
    if (error != cudaSuccess) return gpu.Remember(error);
  }
  if (pageable_target) {
    gpu.RunUntil(queue, queue->submitted);
    if (!gpu.fault().empty()) return gpu.Remember(cudaErrorIllegalAddress);
  }
  return cudaSuccess;
}

// Also from and to pinned memory, it waits; between devices it need not, which nothing may rely on.
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  Queue* queue = gpu.Find(stream);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (!Reaches(memory, bytes, true) || !DeviceMemory::Get().Reaches(queue->device, memory)) {
    return gpu.Remember(cudaErrorInvalidValue);
  }
  return gpu.Remember(gpu.Submit(queue, [memory, value, bytes] {
    const DeviceMemory::Window window;
    std::memset(memory, value, bytes);
  }));
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute /*attribute*/, int value) {
  LLM_ENTER_CALL();
  if (value < 0 || value > kSharedOptinBytes) return Gpu::Get().Remember(cudaErrorInvalidValue);
  Gpu::Get().set_shared_limit(kernel, static_cast<size_t>(value));
  return cudaSuccess;
}

namespace llm::cuda_on_cpu {

std::string KernelName(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? std::string("kernel ") + text : "kernel";
  std::free(text);
  return name;
}

std::function<void()> MakeGridWork(const GridShape& shape, const Kernel& kernel, const void* args) {
  const size_t words = kernel.args_bytes / sizeof(std::max_align_t) + 1;
  auto copy = std::make_shared<std::vector<std::max_align_t>>(words);
  std::memcpy(copy->data(), args, kernel.args_bytes);
  return [shape, kernel, copy] {
    Gpu::Get().Run(shape, [kernel, copy] { kernel.call(kernel.address, copy->data()); });
  };
}

cudaError_t SubmitGrid(const GridShape& shape, cudaStream_t stream, const Kernel& kernel,
                       const void* args) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  Queue* queue = gpu.Find(stream);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (queue->device != Gpu::current_device()) return gpu.Remember(cudaErrorInvalidResourceHandle);
  const cudaError_t error = gpu.CheckShape(kernel.address, shape);
  if (error != cudaSuccess) return gpu.Remember(error);
  return gpu.Remember(gpu.Submit(queue, MakeGridWork(shape, kernel, args)));
}

}  // namespace llm::cuda_on_cpu
