// Runs independent tasks on a fixed set of worker threads, the caller being worker 0, or on the
// threads of the host's executor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "src/base/crowd_guard.h"
#include "src/base/hook_executor.h"

namespace llm {

class Clock;
class TraceRecorder;
struct OpSpan;

struct ThreadPoolOptions {
  int num_threads = 1;                // workers, the caller included
  int64_t spin_ns = 50'000;           // how long an idle worker polls before it parks
  std::vector<int32_t> cpu_ids = {};  // worker i > 0 is pinned to cpu_ids[i % size]; empty: to none
  ExecutorHook executor = {};         // run != nullptr: no thread is created
  HookFault* fault = nullptr;         // outlives the pool; needed with an executor
};

class ThreadPool {
 public:
  using Task = absl::FunctionRef<void(int task, int worker)>;

  // RESOURCE_EXHAUSTED when a thread cannot be created, INVALID_ARGUMENT when one cannot be pinned;
  // none is left running then.
  static absl::StatusOr<std::unique_ptr<ThreadPool>> Create(const ThreadPoolOptions& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return options_.num_threads; }

  // While `trace` is on, each job becomes a span on each worker that had a task of it, named by the
  // latest set_op. Before the first job; both outlive the last.
  void SetTrace(TraceRecorder* trace, const Clock* clock);
  void set_op(const char* name) { op_ = name; }  // a literal; by the caller of ParallelFor

  // Calls task(i, worker) once for each i in [0, num_tasks), in any order on any worker, and
  // returns when all are done. Tasks must not throw, nor depend on each other's running
  // concurrently. REQUIRES: one caller at a time; not from inside a task. Where another program
  // keeps our workers off their cores, the caller does without them for a while.
  void ParallelFor(int num_tasks, Task task);

 private:
  explicit ThreadPool(const ThreadPoolOptions& options) : options_(options) {}
  absl::Status StartThreads();
  void WorkerLoop(int worker);
  void RunTasks(const Task& task, int num_tasks, int worker, OpSpan* op);
  void RunTasksHere(const Task& task, int num_tasks, int worker);
  void EndOp(int worker, OpSpan* op);
  bool MayShare(int num_tasks);
  void WaitForWorkers();
  bool SpinUntilIdle(int max_spins);
  int64_t WorkersCpuNs();
  void WaitForJob(uint32_t seen_epoch);

  const ThreadPoolOptions options_;
  std::unique_ptr<HookExecutor> executor_;  // null: threads_ work
  std::vector<std::thread> threads_;
  CrowdGuard crowd_;  // the caller's
  std::mutex mutex_;
  std::condition_variable wake_;
  TraceRecorder* trace_ = nullptr;
  const Clock* clock_ = nullptr;
  const char* op_ = "job";  // written between jobs
  const Task* task_ = nullptr;
  int num_tasks_ = 0;
  std::atomic<uint32_t> epoch_{0};
  std::atomic<int> next_task_{0};
  std::atomic<int> num_busy_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace llm
