// Runs the workers of a thread pool on the host's own threads, and holds the host to its promise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "src/base/hook_fault.h"

namespace llm {

struct ExecutorHook {
  using Task = void (*)(void* data, uint32_t index);
  // Calls task(data, i) once for each i in [0, count) and returns when all calls have returned.
  void (*run)(void* user_data, Task task, void* data, uint32_t count) = nullptr;
  void* user_data = nullptr;
};

class HookExecutor {
 public:
  // `fault` outlives the executor.
  HookExecutor(const ExecutorHook& hook, int max_workers, HookFault* fault);

  // Calls work(w) exactly once for each w in [0, num_workers), which is at most max_workers, and
  // returns when all are done. Calls that the host leaves out happen here, on this thread; calls
  // too many do nothing; either is a fault. REQUIRES: one caller at a time; `work` does not throw.
  void Run(int num_workers, absl::FunctionRef<void(int worker)> work);

 private:
  static void RunTask(void* data, uint32_t index);
  // False when that worker's turn was taken already.
  bool TakeTurn(uint32_t worker);

  const ExecutorHook hook_;
  const uint32_t max_workers_;
  HookFault* const fault_;
  const absl::FunctionRef<void(int worker)>* work_ = nullptr;  // of the current Run
  const std::unique_ptr<std::atomic<bool>[]> open_;            // [max_workers] whose turn may come
  std::atomic<uint32_t> num_done_{0};
};

}  // namespace llm
