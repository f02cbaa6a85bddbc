// Times are those of events on the stream: what the host does between calls is not in them.
#include "tests/bench/cuda_bench.h"

#include <algorithm>

#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm::bench {
namespace {

constexpr int kRounds = 7;
constexpr double kRoundMicroseconds = 20e3;
constexpr size_t kCopyBytes = size_t{1} << 30;

class Stopwatch {
 public:
  ~Stopwatch() {
    if (begin_ != nullptr) (void)cudaEventDestroy(begin_);
    if (end_ != nullptr) (void)cudaEventDestroy(end_);
  }
  absl::Status Create() {
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventCreate(&begin_));
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventCreate(&end_));
    return absl::OkStatus();
  }
  // Microseconds for one of `calls` calls, the first of which is told `first`.
  absl::StatusOr<double> Run(cudaStream_t stream, int first, int calls,
                             const std::function<absl::Status(int)>& work) {
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventRecord(begin_, stream));
    for (int i = 0; i < calls; ++i) LLM_RETURN_IF_ERROR(work(first + i));
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventRecord(end_, stream));
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventSynchronize(end_));
    float milliseconds = 0;
    LLM_RETURN_IF_CUDA_ERROR("event", cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1e3 * static_cast<double>(milliseconds) / calls;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

absl::StatusOr<Times> Measure(cudaStream_t stream, const std::function<absl::Status(int)>& work) {
  Stopwatch watch;
  LLM_RETURN_IF_ERROR(watch.Create());
  LLM_ASSIGN_OR_RETURN(double once, watch.Run(stream, 0, 1, work));  // loads the kernel as well
  LLM_ASSIGN_OR_RETURN(once, watch.Run(stream, 1, 3, work));
  const int calls = std::clamp(static_cast<int>(kRoundMicroseconds / std::max(once, 1.0)), 1, 2000);
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    LLM_ASSIGN_OR_RETURN(const double each, watch.Run(stream, round * calls, calls, work));
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

absl::StatusOr<double> CopyRate(cudaStream_t stream) {
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner from, Filled(kCopyBytes, "copy"));
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner to, Filled(kCopyBytes, "copy"));
  const auto copy = [&](int) {
    return CudaStatus("copy", cudaMemcpyAsync(to.get(), from.get(), kCopyBytes,
                                              cudaMemcpyDeviceToDevice, stream));
  };
  LLM_ASSIGN_OR_RETURN(const Times times, Measure(stream, copy));
  return 2 * static_cast<double>(kCopyBytes) / (times.median * 1e-6);
}

}  // namespace llm::bench
