// A job is published by raising the epoch; workers take task indices from one counter until it runs
// out.
#include "src/base/thread_pool.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/affinity.h"
#include "src/base/clock.h"
#include "src/base/float_state.h"
#include "src/base/library_thread.h"
#include "src/base/status_macros.h"
#include "src/base/trace.h"

namespace llm {
namespace {

void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(const ThreadPoolOptions& options) {
  if (options.num_threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("thread pool: num_threads must be at least 1, is ", options.num_threads));
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool(options));
  if (options.executor.run != nullptr) {
    pool->executor_ =
        std::make_unique<HookExecutor>(options.executor, options.num_threads, options.fault);
  } else {
    LLM_RETURN_IF_ERROR(pool->StartThreads());
  }
  return pool;
}

absl::Status ThreadPool::StartThreads() {
  threads_.reserve(static_cast<size_t>(options_.num_threads - 1));
  for (int worker = 1; worker < options_.num_threads; ++worker) {
    std::thread thread;
    LLM_RETURN_IF_ERROR(StartThread(
        absl::StrCat("thread pool: thread ", worker, " of ", options_.num_threads),
        [this, worker] { WorkerLoop(worker); }, &thread));
    threads_.push_back(std::move(thread));
    if (options_.cpu_ids.empty()) continue;
    const size_t index = static_cast<size_t>(worker) % options_.cpu_ids.size();
    LLM_RETURN_IF_ERROR(PinThread(options_.cpu_ids[index], &threads_.back()));
  }
  return absl::OkStatus();
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_.store(true);
    epoch_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::ParallelFor(int num_tasks, Task task) {
  if (num_tasks <= 0) return;
  if (!MayShare(num_tasks)) {
    next_task_.store(0, std::memory_order_relaxed);
    RunTasksHere(task, num_tasks, 0);
    return;
  }
  if (executor_ != nullptr) {
    // The workers share out the tasks, in whatever order the host lets them run.
    next_task_.store(0, std::memory_order_relaxed);
    executor_->Run(std::min(num_tasks, options_.num_threads),
                   [&](int worker) { RunTasksHere(task, num_tasks, worker); });
    return;
  }
  {
    // Under the lock, so that a worker between its last look at the epoch and its wait cannot miss
    // the job.
    std::lock_guard<std::mutex> lock(mutex_);
    task_ = &task;
    num_tasks_ = num_tasks;
    next_task_.store(0, std::memory_order_relaxed);
    num_busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  RunTasksHere(task, num_tasks, 0);
  WaitForWorkers();
}

// Jobs that are not shared are done by the caller.
bool ThreadPool::MayShare(int num_tasks) {
  if (options_.num_threads == 1 || num_tasks == 1) return false;
  if (!crowd_.crowded()) return true;
  if (SteadyClock().NowNs() < crowd_.alone_until_ns()) return false;
  crowd_.EndAlone();
  return true;
}

// Every worker passes through each job once, so that `task` outlives all looks at it.
void ThreadPool::WaitForWorkers() {
  constexpr int kFewSpins = 1024;  // longer than nearly all waits: only then is it worth a clock
  if (SpinUntilIdle(kFewSpins)) return;
  const int64_t begin_ns = SteadyClock().NowNs();
  const int64_t cpu_begin_ns = WorkersCpuNs();
  while (!SpinUntilIdle(kFewSpins)) {
    std::this_thread::yield();  // with more threads than cores the last worker may need this core
  }
  const int64_t end_ns = SteadyClock().NowNs();
  if (end_ns - begin_ns < CrowdGuard::kMinWaitNs) return;
  crowd_.AddWait(end_ns, end_ns - begin_ns, WorkersCpuNs() - cpu_begin_ns);
}

bool ThreadPool::SpinUntilIdle(int max_spins) {
  for (int spins = 0; spins < max_spins; ++spins) {
    if (num_busy_.load(std::memory_order_acquire) == 0) return true;
    CpuRelax();
  }
  return false;
}

int64_t ThreadPool::WorkersCpuNs() {
  int64_t total_ns = 0;
  for (std::thread& thread : threads_) {
    clockid_t clock;
    timespec time = {};
    if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0) continue;
    if (clock_gettime(clock, &time) == 0) total_ns += time.tv_sec * 1'000'000'000 + time.tv_nsec;
  }
  return total_ns;
}

void ThreadPool::SetTrace(TraceRecorder* trace, const Clock* clock) {
  trace->SetWorkers(options_.num_threads);
  trace_ = trace;
  clock_ = clock;
}

// `op` gets a name when it is to be traced: not when the worker came to see that nothing was left.
void ThreadPool::RunTasks(const Task& task, int num_tasks, int worker, OpSpan* op) {
  if (trace_ != nullptr && trace_->on()) {
    op->begin_ns = clock_->NowNs();
    if (next_task_.load(std::memory_order_relaxed) < num_tasks) op->name = op_;
  }
  for (int i = next_task_.fetch_add(1, std::memory_order_relaxed); i < num_tasks;
       i = next_task_.fetch_add(1, std::memory_order_relaxed)) {
    task(i, worker);
  }
}

void ThreadPool::EndOp(int worker, OpSpan* op) {
  if (op->name == nullptr) return;
  op->end_ns = clock_->NowNs();
  trace_->AddOp(worker, *op);
}

void ThreadPool::RunTasksHere(const Task& task, int num_tasks, int worker) {
  OpSpan op;
  RunTasks(task, num_tasks, worker, &op);
  EndOp(worker, &op);
}

void ThreadPool::WaitForJob(uint32_t seen_epoch) {
  const auto park_at =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(options_.spin_ns);
  for (int spins = 0; epoch_.load(std::memory_order_acquire) == seen_epoch; ++spins) {
    CpuRelax();
    // The clock is read rarely: reading it is dearer than the pause.
    if (spins % 64 == 63 && std::chrono::steady_clock::now() >= park_at) {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return epoch_.load(std::memory_order_relaxed) != seen_epoch; });
      return;
    }
  }
}

void ThreadPool::WorkerLoop(int worker) {
  const ScopedFloatState float_state;  // threads inherit their creator's
  uint32_t epoch = 0;
  while (true) {
    WaitForJob(epoch);
    ++epoch;
    if (stop_.load(std::memory_order_relaxed)) return;
    OpSpan op;
    RunTasks(*task_, num_tasks_, worker, &op);
    num_busy_.fetch_sub(1, std::memory_order_acq_rel);
    EndOp(worker, &op);  // nobody waits for this
  }
}

}  // namespace llm
