// Times are those of events on the stream: what the host does between calls is not in them.
#include "tests/bench/cuda_bench.h"

#include <algorithm>

#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm::bench {
namespace {

constexpr int kRounds = 5;
constexpr double kRoundMicroseconds = 10e3;
constexpr int kMostCalls = 2000;
constexpr int kMostCallsOfAGraph = 200;  // a millisecond or more: its own launch is a small part
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

int CallsOfARound(const Bench& bench, double once, int most) {
  if (bench.quick) return 2;
  return std::clamp(static_cast<int>(kRoundMicroseconds / std::max(once, 1.0)), 1, most);
}

// `round` gives the time of one of its calls.
absl::StatusOr<Times> TimesOf(const Bench& bench,
                              const std::function<absl::StatusOr<double>(int)>& round) {
  std::vector<double> rounds;
  for (int i = 0; i < (bench.quick ? 1 : kRounds); ++i) {
    LLM_ASSIGN_OR_RETURN(const double each, round(i));
    rounds.push_back(each);
  }
  std::sort(rounds.begin(), rounds.end());
  return Times{rounds[rounds.size() / 2], rounds.front(), rounds.back()};
}

absl::StatusOr<GraphExecOwner> MakeGraph(
    int calls, const std::function<absl::Status(int, LaunchStream)>& work) {
  cudaGraph_t created = nullptr;
  LLM_RETURN_IF_CUDA_ERROR("graph", cudaGraphCreate(&created, 0));
  const GraphOwner graph(created);
  GraphRecording recording(graph.get());
  for (int i = 0; i < calls; ++i) LLM_RETURN_IF_ERROR(work(i, {nullptr, &recording}));
  cudaGraphExec_t exec = nullptr;
  LLM_RETURN_IF_CUDA_ERROR("graph", cudaGraphInstantiate(&exec, graph.get(), 0));
  return GraphExecOwner(exec);
}

}  // namespace

absl::StatusOr<Times> Measure(const Bench& bench, const std::function<absl::Status(int)>& work) {
  Stopwatch watch;
  LLM_RETURN_IF_ERROR(watch.Create());
  LLM_ASSIGN_OR_RETURN(double once, watch.Run(bench.stream, 0, 1, work));  // loads the kernel too
  LLM_ASSIGN_OR_RETURN(once, watch.Run(bench.stream, 1, 3, work));
  const int calls = CallsOfARound(bench, once, kMostCalls);
  return TimesOf(bench,
                 [&](int round) { return watch.Run(bench.stream, round * calls, calls, work); });
}

absl::StatusOr<Times> MeasureInGraph(const Bench& bench,
                                     const std::function<absl::Status(int, LaunchStream)>& work) {
  Stopwatch watch;
  LLM_RETURN_IF_ERROR(watch.Create());
  const auto plain = [&](int call) { return work(call, bench.stream); };
  LLM_ASSIGN_OR_RETURN(double once, watch.Run(bench.stream, 0, 1, plain));
  LLM_ASSIGN_OR_RETURN(once, watch.Run(bench.stream, 1, 3, plain));
  const int calls = CallsOfARound(bench, once, kMostCallsOfAGraph);
  LLM_ASSIGN_OR_RETURN(const GraphExecOwner graph, MakeGraph(calls, work));
  const auto launch = [&](int) {
    return CudaStatus("graph", cudaGraphLaunch(graph.get(), bench.stream));
  };
  LLM_ASSIGN_OR_RETURN(once, watch.Run(bench.stream, 0, 1, launch));  // uploads it
  return TimesOf(bench, [&](int) -> absl::StatusOr<double> {
    LLM_ASSIGN_OR_RETURN(const double all, watch.Run(bench.stream, 0, 1, launch));
    return all / calls;
  });
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
