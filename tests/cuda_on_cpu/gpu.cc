// Queues of work, launch limits, and the number of the call that fails.
#include "tests/cuda_on_cpu/gpu.h"

#include <algorithm>
#include <cstdio>
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
    queue.capture = nullptr;
  }
  seed_ = seed;
  random_.seed(static_cast<uint32_t>(seed));
  num_steps_left_ = 0;
  current_device() = 0;
  DeviceMemory::Get().ClosePeers();
  num_calls_ = num_launches_ = num_graph_launches_ = num_captures_ = 0;
  graphs_ = true;
  thread_capture_mode() = cudaStreamCaptureModeGlobal;
  calls_.clear();
  failing_call_ = breaking_call_ = -1;
  failed_call_.clear();
  failing_name_.clear();
  last_error_ = cudaSuccess;
  num_devices_ = 1;
  peers_ = true;
  capability_ = {8, 0};
}

void Gpu::FailCall(int64_t number, cudaError_t error) {
  failing_call_ = num_calls_ + number;
  failure_ = error;
  failed_call_.clear();
}

void Gpu::FailNext(const std::string& call, cudaError_t error) {
  failing_name_ = call;
  failure_ = error;
  failed_call_.clear();
}

cudaError_t Gpu::Enter(const char* call) {
  ++calls_[call];
  if (num_calls_ == breaking_call_) fault_ = "broken by the test";
  if (num_calls_++ == failing_call_ || call == failing_name_) {
    failing_name_.clear();
    failed_call_ = call;
    return Remember(failure_);
  }
  if (!fault_.empty()) return Remember(cudaErrorIllegalAddress);
  if (InvalidateCaptures(call)) return Remember(cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

// Whether there was one that `call` may not be made beside.
bool Gpu::InvalidateCaptures(const char* call) {
  bool forbidden = false;
  for (auto& [id, queue] : queues_) {
    if (queue.capture == nullptr || !IsForbidden(*queue.capture, call)) continue;
    queue.capture->invalidated = true;
    forbidden = true;
  }
  return forbidden;
}

cudaError_t Gpu::Invalidate(Queue* queue, cudaError_t error) {
  if (queue->capture != nullptr) queue->capture->invalidated = true;
  return Remember(error);
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

bool Gpu::has_work() const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const auto& queue) { return queue.second.done < queue.second.submitted; });
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

cudaError_t Gpu::Submit(Queue* queue, std::function<void()> work) {
  if (queue->capture != nullptr) {
    if (queue->capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    Append(std::move(work), &queue->capture->work);
    return cudaSuccess;
  }
  queue->work.push_back(std::move(work));
  ++queue->submitted;
  return cudaSuccess;
}

void Gpu::Break(std::string fault) {
  fault_ = std::move(fault);
  // Tests of the backends see a status only.
  if (!fault_.empty()) std::fprintf(stderr, "cuda_on_cpu: %s\n", fault_.c_str());
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
  return shape.shared_bytes > shared_limit(kernel) ? cudaErrorInvalidValue : cudaSuccess;
}

size_t Gpu::shared_limit(const void* kernel) const {
  const auto limit = shared_limits_.find(kernel);
  return limit == shared_limits_.end() ? kDefaultSharedBytes : limit->second;
}

}  // namespace llm::cuda_on_cpu
