// Queues of work, launch limits, and the number of the call that fails.
#include "tests/cuda_on_cpu/gpu.h"

#include <iterator>
#include <utility>

namespace llm::cuda_on_cpu {
namespace {

constexpr size_t kDefaultSharedBytes = 48 * 1024;

uint64_t IdOf(cudaStream_t stream) { return reinterpret_cast<uint64_t>(stream); }

}  // namespace

Gpu& Gpu::Get() {
  static Gpu gpu;
  return gpu;
}

void Gpu::Reset(uint64_t seed) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  fault_ = "reset";  // ends what has paused
  for (auto& [id, queue] : queues_) {
    while (queue.fiber.paused()) GoOn(&queue);
  }
  fault_.clear();
  for (auto& [id, queue] : queues_) {
    queue.work.clear();
    queue.done = queue.submitted;
  }
  seed_ = seed;
  random_.seed(static_cast<uint32_t>(seed));
  num_steps_left_ = 0;
  current_device() = 0;
  DeviceMemory::Get().ClosePeers();
  num_calls_ = num_launches_ = 0;
  failing_call_ = breaking_call_ = -1;
  failed_call_.clear();
  last_error_ = cudaSuccess;
  num_devices_ = 1;
  peers_ = true;
}

void Gpu::FailCall(int64_t number, cudaError_t error) {
  failing_call_ = num_calls_ + number;
  failure_ = error;
  failed_call_.clear();
}

cudaError_t Gpu::Enter(const char* call) {
  if (num_calls_ == breaking_call_) fault_ = "broken by the test";
  if (num_calls_++ == failing_call_) {
    failed_call_ = call;
    return Remember(failure_);
  }
  if (!fault_.empty()) return Remember(cudaErrorIllegalAddress);
  return cudaSuccess;
}

cudaError_t Gpu::Remember(cudaError_t error) {
  if (error != cudaSuccess) last_error_ = error;
  return error;
}

cudaError_t Gpu::TakeLastError() { return std::exchange(last_error_, cudaSuccess); }

int& Gpu::current_device() {
  static thread_local int device = 0;
  return device;
}

Queue* Gpu::Find(cudaStream_t stream) {
  if (stream != nullptr) return FindById(IdOf(stream));
  const auto id = static_cast<uint64_t>(current_device());
  Queue& queue = queues_[id];
  queue.id = id;
  queue.device = current_device();
  return &queue;
}

Queue* Gpu::FindById(uint64_t id) {
  const auto found = queues_.find(id);
  return found == queues_.end() ? nullptr : &found->second;
}

cudaStream_t Gpu::AddStream() {
  const uint64_t id = next_stream_++;
  Queue& queue = queues_[id];
  queue.id = id;
  queue.device = current_device();
  return reinterpret_cast<cudaStream_t>(id);
}

bool Gpu::RemoveStream(cudaStream_t stream) {
  return stream != nullptr && queues_.erase(IdOf(stream)) > 0;
}

size_t Gpu::num_streams() const {
  return static_cast<size_t>(
      std::distance(queues_.lower_bound(uint64_t{kMaxDevices}), queues_.end()));
}

void Gpu::Submit(Queue* queue, std::function<void()> work) {
  queue->work.push_back(std::move(work));
  ++queue->submitted;
}

cudaError_t Gpu::CheckShape(const void* kernel, const GridShape& shape) const {
  const Extent& grid = shape.grid;
  const Extent& block = shape.block;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) {
    return cudaErrorInvalidConfiguration;
  }
  if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
  if (block.x > 1024 || block.y > 1024 || block.z > 64 ||
      uint64_t{block.x} * block.y * block.z > kMaxBlockThreads) {
    return cudaErrorInvalidConfiguration;
  }
  const auto limit = shared_limits_.find(kernel);
  const size_t allowed = limit == shared_limits_.end() ? kDefaultSharedBytes : limit->second;
  return shape.shared_bytes > allowed ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace llm::cuda_on_cpu
