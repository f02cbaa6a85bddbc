// Runs a function on several threads that start at the same moment, and times it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace bench {

// Seconds from the common start to the end of the slowest thread. Threads spin until all are there,
// so that no rate includes the creation of a thread.
inline double RunTogether(unsigned num_threads, const std::function<void(unsigned)>& work) {
  using Clock = std::chrono::steady_clock;
  std::atomic<unsigned> ready{0};
  std::vector<Clock::time_point> begins(num_threads), ends(num_threads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < num_threads; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready.load() < num_threads) std::this_thread::yield();
      begins[i] = Clock::now();
      work(i);
      ends[i] = Clock::now();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Clock::time_point begin = *std::min_element(begins.begin(), begins.end());
  const Clock::time_point end = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace bench
