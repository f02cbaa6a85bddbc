// Every task runs once, on a worker that exists, however many threads, tasks and jobs there are.
#include "src/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace llm {
namespace {

std::unique_ptr<ThreadPool> MakePool(int num_threads, int64_t spin_ns = 50'000) {
  auto pool = ThreadPool::Create({.num_threads = num_threads, .spin_ns = spin_ns});
  EXPECT_TRUE(pool.ok()) << pool.status();
  return std::move(pool).value();
}

TEST(ThreadPoolTest, RefusesToHaveNoThread) {
  EXPECT_EQ(ThreadPool::Create({.num_threads = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ThreadPoolTest, RunsEveryTaskOnce) {
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    const auto pool = MakePool(num_threads);
    EXPECT_EQ(pool->num_threads(), num_threads);
    for (int num_tasks : {0, 1, 2, 3, 7, 100}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(num_tasks));
      pool->ParallelFor(num_tasks, [&](int task, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, num_threads);
        runs[static_cast<size_t>(task)].fetch_add(1);
      });
      for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPoolTest, SeesWhatTasksWroteWhenParallelForReturns) {
  const auto pool = MakePool(3);
  std::vector<int> written(64, 0);
  for (int job = 1; job <= 500; ++job) {
    pool->ParallelFor(64, [&](int task, int) { written[static_cast<size_t>(task)] += job; });
    for (int value : written) ASSERT_EQ(value, job * (job + 1) / 2);
  }
}

TEST(ThreadPoolTest, RunsJobsAfterItsWorkersHaveParked) {
  const auto pool = MakePool(4, /*spin_ns=*/0);
  std::atomic<int> runs{0};
  for (int job = 0; job < 200; ++job) {
    pool->ParallelFor(8, [&](int, int) { runs.fetch_add(1); });
  }
  EXPECT_EQ(runs.load(), 200 * 8);
}

TEST(ThreadPoolTest, IsCreatedAndDestroyedManyTimes) {
  for (int round = 0; round < 100; ++round) {
    const auto pool = MakePool(1 + round % 4, round % 2 == 0 ? 0 : 50'000);
    if (round % 3 == 0) continue;  // destroyed without ever having worked
    std::atomic<int> runs{0};
    pool->ParallelFor(5, [&](int, int) { runs.fetch_add(1); });
    EXPECT_EQ(runs.load(), 5);
  }
}

}  // namespace
}  // namespace llm
