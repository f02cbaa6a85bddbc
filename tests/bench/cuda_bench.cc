// Times are those of events on the stream: what the host does between calls is not in them.
#include "tests/bench/cuda_bench.h"

#include <algorithm>

#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm::bench {
namespace {

constexpr int kRounds = 5;
constexpr double kRoundMicroseconds = 10e3;
constexpr int64_t kCacheBytes = int64_t{512} << 20;  // ten times a GPU's largest

class Stopwatch {
 public:
  absl::Status Create() {
    for (EventOwner* event : {&begin_, &end_}) {
      cudaEvent_t created = nullptr;
      LLM_RETURN_IF_CUDA_ERROR("event", cudaEventCreate(&created));
      *event = EventOwner(created);
    }
    return absl::OkStatus();
  }
  // Microseconds for one of `calls` calls, the first of which is told `first`.
  absl::StatusOr<double> Run(cudaStream_t stream, int first, int calls,
                             const std::function<absl::Status(int)>& work) {
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventRecord(begin_.get(), stream));
    for (int i = 0; i < calls; ++i) LLM_RETURN_IF_ERROR(work(first + i));
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventRecord(end_.get(), stream));
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventSynchronize(end_.get()));
    float milliseconds = 0;
    LLM_RETURN_IF_CUDA_ERROR("event",
                             cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return 1e3 * static_cast<double>(milliseconds) / calls;
  }

 private:
  EventOwner begin_, end_;
};

}  // namespace

absl::StatusOr<Times> Measure(const Bench& bench, const std::function<absl::Status(int)>& work) {
  Stopwatch watch;
  LLM_RETURN_IF_ERROR(watch.Create());
  LLM_ASSIGN_OR_RETURN(double once, watch.Run(bench.stream, 0, 1, work));  // loads the kernel too
  if (bench.quick) return Times{once, once, once};
  LLM_ASSIGN_OR_RETURN(once, watch.Run(bench.stream, 1, 3, work));
  const int calls = std::clamp(static_cast<int>(kRoundMicroseconds / std::max(once, 1.0)), 1, 2000);
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    LLM_ASSIGN_OR_RETURN(const double each, watch.Run(bench.stream, round * calls, calls, work));
    rounds.push_back(each);
  }
  std::sort(rounds.begin(), rounds.end());
  return Times{rounds[kRounds / 2], rounds.front(), rounds.back()};
}

absl::StatusOr<DeviceMemoryOwner> Filled(size_t bytes, const char* what) {
  LLM_ASSIGN_OR_RETURN(DeviceMemoryOwner memory, AllocateDevice(bytes, what));
  if (bytes > 0) LLM_RETURN_IF_CUDA_ERROR(what, cudaMemset(memory.get(), 0x11, bytes));
  return memory;
}

int64_t CopiesBeyondCaches(const Bench& bench, int64_t bytes) {
  return bench.quick ? 1 : kCacheBytes / bytes + 1;
}

}  // namespace llm::bench
