// What a host lends a model or an engine of its own: memory, threads, time, and a choice of CPUs.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/hook_clock.h"
#include "src/base/hook_executor.h"
#include "src/tensor/buffer.h"

namespace llm {

struct HostHooks {
  Allocator::Hooks allocator;      // for counted memory
  ExecutorHook executor;           // in place of worker threads
  HookClock::Now clock = nullptr;  // null: the steady clock
  void* clock_user_data = nullptr;
  std::vector<int32_t> cpu_ids;  // thread i of ours runs on cpu_ids[i % size]; empty: anywhere
};

}  // namespace llm
