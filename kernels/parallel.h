// Runs the tasks of one kernel on the stream's pool, or on the calling thread when there is none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/functional/function_ref.h"
#include "src/base/math.h"
#include "src/base/thread_pool.h"
#include "src/tensor/stream.h"

namespace llm {

inline int NumWorkers(const Stream& stream) {
  return stream.pool != nullptr ? stream.pool->num_threads() : 1;
}

// Calls task(i, worker) once for each i in [0, num_tasks). Results must not depend on which worker
// or in which order.
inline void RunTasks(const Stream& stream, int64_t num_tasks,
                     absl::FunctionRef<void(int64_t task, int worker)> task) {
  if (num_tasks <= 0) return;
  if (stream.pool == nullptr) {
    for (int64_t i = 0; i < num_tasks; ++i) task(i, 0);
    return;
  }
  // The pool counts in int; more tasks than that are run in ranges.
  const int64_t range = CeilDiv<int64_t>(num_tasks, std::numeric_limits<int>::max() / 2);
  stream.pool->ParallelFor(static_cast<int>(CeilDiv(num_tasks, range)), [&](int index, int worker) {
    const int64_t begin = index * range;
    const int64_t end = std::min(begin + range, num_tasks);
    for (int64_t i = begin; i < end; ++i) task(i, worker);
  });
}

}  // namespace llm
