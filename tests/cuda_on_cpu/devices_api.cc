// Devices of the emulated runtime, and what they reach of each other.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"

using llm::cuda_on_cpu::DeviceMemory;
using llm::cuda_on_cpu::Gpu;
using llm::cuda_on_cpu::Queue;

namespace {

constexpr int kSharedOptinBytes = 99 * 1024;  // of sm_89 and sm_120: the least of our targets

bool IsDevice(int device) { return device >= 0 && device < Gpu::Get().num_devices(); }

bool CanReach(int device, int peer) { return device != peer && Gpu::Get().peers(); }

bool IsOn(int device, const void* address, size_t bytes) {
  const DeviceMemory& memory = DeviceMemory::Get();
  return memory.DeviceOf(address) == device && memory.Contains(address, bytes);
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  LLM_ENTER_CALL();
  *count = Gpu::Get().num_devices();
  return *count == 0 ? Gpu::Get().Remember(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  LLM_ENTER_CALL();
  if (!IsDevice(device)) return Gpu::Get().Remember(cudaErrorInvalidDevice);
  Gpu::current_device() = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  LLM_ENTER_CALL();
  *device = Gpu::current_device();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  LLM_ENTER_CALL();
  if (!IsDevice(device)) return Gpu::Get().Remember(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 4;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = Gpu::Get().capability().first;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = Gpu::Get().capability().second;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = kSharedOptinBytes;
      return cudaSuccess;
  }
  return Gpu::Get().Remember(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  LLM_ENTER_CALL();
  const DeviceMemory& memory = DeviceMemory::Get();
  *total_bytes = memory.limit_bytes();
  *free_bytes =
      *total_bytes - std::min(*total_bytes, memory.allocated_bytes(Gpu::current_device()));
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  LLM_ENTER_CALL();
  if (!IsDevice(device) || !IsDevice(peer)) return Gpu::Get().Remember(cudaErrorInvalidDevice);
  *can_access = CanReach(device, peer) ? 1 : 0;
  return cudaSuccess;
}

// Of the current device to the peer's memory, not the other way round.
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  LLM_ENTER_CALL();
  const int device = Gpu::current_device();
  if (flags != 0) return Gpu::Get().Remember(cudaErrorInvalidValue);
  if (!IsDevice(peer) || !CanReach(device, peer)) {
    return Gpu::Get().Remember(cudaErrorInvalidDevice);
  }
  if (DeviceMemory::Get().has_peer(device, peer)) {
    return Gpu::Get().Remember(cudaErrorPeerAccessAlreadyEnabled);
  }
  DeviceMemory::Get().set_peer(device, peer, true);
  return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  LLM_ENTER_CALL();
  const int device = Gpu::current_device();
  if (!IsDevice(peer)) return Gpu::Get().Remember(cudaErrorInvalidDevice);
  if (!DeviceMemory::Get().has_peer(device, peer)) {
    return Gpu::Get().Remember(cudaErrorPeerAccessNotEnabled);
  }
  DeviceMemory::Get().set_peer(device, peer, false);
  return cudaSuccess;
}

// Needs no peer access: goes through the host where there is none.
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  Queue* queue = gpu.Find(stream);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (!IsDevice(to_device) || !IsDevice(from_device)) return gpu.Remember(cudaErrorInvalidDevice);
  if (bytes == 0) return cudaSuccess;
  if (!IsOn(to_device, to, bytes) || !IsOn(from_device, from, bytes)) {
    return gpu.Remember(cudaErrorInvalidValue);
  }
  return gpu.Remember(gpu.Submit(queue, [to, from, bytes] {
    const DeviceMemory::Window window;
    std::memcpy(to, from, bytes);
  }));
}

// After all earlier work of both devices; returns before it is done.
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes) {
  LLM_ENTER_CALL();
  if (!IsDevice(to_device) || !IsDevice(from_device)) {
    return Gpu::Get().Remember(cudaErrorInvalidDevice);
  }
  Gpu::Get().RunDevice(to_device);
  Gpu::Get().RunDevice(from_device);
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr);
}
