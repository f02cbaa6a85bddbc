// The host of an API sequence: its memory, executor and clock, and how they misbehave.
#pragma once

#include <inlay/llm.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace llm {

struct SequenceHost {
  std::atomic<int64_t> bytes{0};
  std::atomic<uint32_t> allocations{0};
  uint32_t fail_every = 0;  // 0: never
  uint32_t run_mode = 0;    // 0: soundly
  uint32_t clock_mode = 0;
  std::atomic<int64_t> now_ns{1000};

  void* Allocate(size_t size, size_t alignment) {
    if (fail_every != 0 && ++allocations % fail_every == 0) return nullptr;
    bytes += static_cast<int64_t>(size);
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  }
  void Deallocate(void* memory, size_t size) {
    bytes -= static_cast<int64_t>(size);
    std::free(memory);
  }
  void Run(void (*task)(void*, uint32_t), void* data, uint32_t count) const {
    if (run_mode == 1) throw std::runtime_error("host");
    for (uint32_t i = count; i > 0; --i) task(data, i - 1);
    if (run_mode == 2) task(data, 0);
    if (run_mode == 3) task(data, std::numeric_limits<uint32_t>::max());
  }
  int64_t Now() {
    switch (clock_mode) {
      case 0:
        return now_ns += 1000;
      case 1:
        return now_ns -= 5'000'000;
      case 2:
        return std::numeric_limits<int64_t>::max();
      case 3:
        return std::numeric_limits<int64_t>::min();
      case 4:
        return now_ns += int64_t{3600} * 1'000'000'000;
      default:
        throw std::runtime_error("host");
    }
  }
  llm_host Hooks(bool executor, bool clock) {
    llm_host host;
    llm_host_init(&host);
    host.allocate = [](void* self, size_t size, size_t alignment) {
      return static_cast<SequenceHost*>(self)->Allocate(size, alignment);
    };
    host.deallocate = [](void* self, void* memory, size_t size) {
      static_cast<SequenceHost*>(self)->Deallocate(memory, size);
    };
    host.run = [](void* self, void (*task)(void*, uint32_t), void* data, uint32_t count) {
      static_cast<SequenceHost*>(self)->Run(task, data, count);
    };
    host.now_ns = [](void* self) { return static_cast<SequenceHost*>(self)->Now(); };
    if (!executor) host.run = nullptr;
    if (!clock) host.now_ns = nullptr;
    host.allocator_user_data = host.executor_user_data = host.clock_user_data = this;
    return host;
  }
};

}  // namespace llm
