// Hooks that keep their promise in unusual ways, and hooks that break it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "src/base/affinity.h"
#include "src/base/hook_clock.h"
#include "src/base/thread_pool.h"

namespace llm {
namespace {

using ::testing::HasSubstr;
using Task = ExecutorHook::Task;

void InOrder(void*, Task task, void* data, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) task(data, i);
}
void Reversed(void*, Task task, void* data, uint32_t count) {
  for (uint32_t i = count; i > 0; --i) task(data, i - 1);
}
void AllAtOnce(void*, Task task, void* data, uint32_t count) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) threads.emplace_back(task, data, i);
  for (std::thread& thread : threads) thread.join();
}
void LeavesTheLastOut(void*, Task task, void* data, uint32_t count) {
  for (uint32_t i = 0; i + 1 < count; ++i) task(data, i);
}
void RunsNone(void*, Task, void*, uint32_t) {}
void RunsTwice(void*, Task task, void* data, uint32_t count) {
  InOrder(nullptr, task, data, count);
  InOrder(nullptr, task, data, count);
}
void RunsTooMany(void*, Task task, void* data, uint32_t count) {
  InOrder(nullptr, task, data, count);
  task(data, count);
  task(data, 0xffffffffu);
}
void Throws(void*, Task task, void* data, uint32_t) {
  task(data, 0);
  throw std::runtime_error("host");
}
// Leaves a thread behind that is still at work, or has not begun, when the call returns.
void DoesNotWait(void* user_data, Task task, void* data, uint32_t count) {
  auto* threads = static_cast<std::vector<std::thread>*>(user_data);
  threads->emplace_back(task, data, 0);
  for (uint32_t i = 1; i < count; ++i) task(data, i);
}

using Run = void (*)(void*, Task, void*, uint32_t);

// What a pool of 3 workers on `run` did with 20 tasks, 50 times; each must have run once a job.
absl::Status RunJobs(Run run, void* user_data = nullptr) {
  HookFault fault;
  ThreadPoolOptions options;
  options.num_threads = 3;
  options.executor = {run, user_data};
  options.fault = &fault;
  const auto pool = *ThreadPool::Create(options);
  EXPECT_EQ(pool->num_threads(), 3);
  std::vector<std::atomic<int>> runs(20);
  std::atomic<int> scratch[3] = {};
  for (int job = 1; job <= 50; ++job) {
    pool->ParallelFor(20, [&](int task, int worker) {
      EXPECT_EQ(scratch[worker].fetch_add(1), 0) << "two tasks share worker " << worker;
      runs[static_cast<size_t>(task)].fetch_add(1);
      scratch[worker].fetch_sub(1);
    });
    for (const auto& count : runs) EXPECT_EQ(count.load(), job);
  }
  if (user_data != nullptr) {
    for (std::thread& thread : *static_cast<std::vector<std::thread>*>(user_data)) thread.join();
  }
  return fault.status();
}

TEST(HookExecutorTest, RunsEveryTaskOnceInWhateverOrderTheHostRunsThem) {
  EXPECT_TRUE(RunJobs(InOrder).ok());
  EXPECT_TRUE(RunJobs(Reversed).ok());
  EXPECT_TRUE(RunJobs(AllAtOnce).ok());
}

TEST(HookExecutorTest, RunsWhatTheHostLeavesOutAndSaysSo) {
  EXPECT_THAT(RunJobs(LeavesTheLastOut).message(), HasSubstr("without running every task"));
  EXPECT_THAT(RunJobs(RunsNone).message(), HasSubstr("without running every task"));
}

TEST(HookExecutorTest, IgnoresCallsTooManyAndSaysSo) {
  EXPECT_THAT(RunJobs(RunsTwice).message(), HasSubstr("not its to run"));
  EXPECT_THAT(RunJobs(RunsTooMany).message(), HasSubstr("not its to run"));
}

TEST(HookExecutorTest, SurvivesAnExceptionAndSaysSo) {
  EXPECT_THAT(RunJobs(Throws).message(), HasSubstr("threw an exception"));
}

TEST(HookExecutorTest, SurvivesAHostThatReturnsTooEarly) {
  std::vector<std::thread> threads;
  RunJobs(DoesNotWait, &threads).IgnoreError();  // whether it was too early is the scheduler's
}

int64_t ReadTime(void* user_data) { return *static_cast<int64_t*>(user_data); }
int64_t ThrowTime(void*) { throw std::runtime_error("host"); }

TEST(HookClockTest, NeverGoesBack) {
  int64_t now_ns = 100;
  const HookClock clock(ReadTime, &now_ns, nullptr);
  EXPECT_EQ(clock.NowNs(), 100);
  now_ns = 40;
  EXPECT_EQ(clock.NowNs(), 100);
  now_ns = INT64_MIN;
  EXPECT_EQ(clock.NowNs(), 100);
  now_ns = 101;
  EXPECT_EQ(clock.NowNs(), 101);
}

TEST(HookClockTest, IsPositiveAndLeavesRoomForSums) {
  int64_t now_ns = 0;
  const HookClock clock(ReadTime, &now_ns, nullptr);
  EXPECT_EQ(clock.NowNs(), 1);
  now_ns = INT64_MAX;
  EXPECT_EQ(clock.NowNs(), INT64_MAX / 4);
}

TEST(HookClockTest, StandsStillWhenTheHostThrows) {
  HookFault fault;
  const HookClock clock(ThrowTime, nullptr, &fault);
  EXPECT_FALSE(fault.occurred());
  EXPECT_EQ(clock.NowNs(), 1);
  EXPECT_THAT(fault.status().message(), HasSubstr("clock threw"));
}

int FirstCpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<size_t>(cpu), &set)) ++cpu;
  return cpu;
}

TEST(AffinityTest, NamesTheCpuThatThereIsNot) {
  const int first = FirstCpu();
  EXPECT_TRUE(CheckCpus({}).ok());
  EXPECT_TRUE(CheckCpus({first, first}).ok());
  for (const int32_t bad : {-1, CPU_SETSIZE - 1, CPU_SETSIZE, INT32_MAX}) {
    const absl::Status status = CheckCpus({first, bad});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(std::to_string(bad)));
  }
}

TEST(AffinityTest, PinsTheWorkersAndNotTheCaller) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  ThreadPoolOptions options;
  options.num_threads = 3;
  options.cpu_ids = {FirstCpu()};
  const auto pool = *ThreadPool::Create(options);
  std::atomic<int> num_wrong{0};
  for (int job = 0; job < 100; ++job) {
    pool->ParallelFor(12, [&](int, int worker) {
      cpu_set_t set;
      CPU_ZERO(&set);
      sched_getaffinity(0, sizeof(set), &set);
      const bool pinned =
          CPU_COUNT(&set) == 1 && CPU_ISSET(static_cast<size_t>(options.cpu_ids[0]), &set);
      const bool right = worker == 0 ? CPU_EQUAL(&set, &before) : pinned;
      num_wrong.fetch_add(right ? 0 : 1);
    });
  }
  EXPECT_EQ(num_wrong.load(), 0);
}

}  // namespace
}  // namespace llm
