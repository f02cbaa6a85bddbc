// A turn is taken by whoever closes it first, so that no worker runs twice and none is left out.
#include "src/base/hook_executor.h"

#include <thread>

#include "src/base/float_state.h"

namespace llm {

HookExecutor::HookExecutor(const ExecutorHook& hook, int max_workers, HookFault* fault)
    : hook_(hook),
      max_workers_(static_cast<uint32_t>(max_workers)),
      fault_(fault),
      open_(new std::atomic<bool>[max_workers_]) {
  for (uint32_t worker = 0; worker < max_workers_; ++worker) open_[worker].store(false);
}

void HookExecutor::Run(int num_workers, absl::FunctionRef<void(int worker)> work) {
  const uint32_t count = static_cast<uint32_t>(num_workers);
  work_ = &work;
  num_done_.store(0, std::memory_order_relaxed);
  for (uint32_t worker = 0; worker < count; ++worker) {
    open_[worker].store(true, std::memory_order_release);
  }
  try {
    hook_.run(hook_.user_data, &HookExecutor::RunTask, this, count);
  } catch (...) {
    fault_->Record("the host's executor threw an exception");
  }
  for (uint32_t worker = 0; worker < count; ++worker) {
    if (!TakeTurn(worker)) continue;
    fault_->Record("the host's executor returned without running every task");
    work(static_cast<int>(worker));
    num_done_.fetch_add(1, std::memory_order_release);
  }
  while (num_done_.load(std::memory_order_acquire) != count) {
    fault_->Record("the host's executor returned while a task was running");
    std::this_thread::yield();
  }
}

bool HookExecutor::TakeTurn(uint32_t worker) {
  return open_[worker].exchange(false, std::memory_order_acquire);
}

void HookExecutor::RunTask(void* data, uint32_t index) {
  const ScopedFloatState float_state;  // the host's thread
  HookExecutor& self = *static_cast<HookExecutor*>(data);
  if (index >= self.max_workers_ || !self.TakeTurn(index)) {
    self.fault_->Record("the host's executor ran a task that was not its to run");
    return;
  }
  (*self.work_)(static_cast<int>(index));
  self.num_done_.fetch_add(1, std::memory_order_release);
}

}  // namespace llm
