// The reference names cudaMalloc and cudaEventQuery as "potentially unsafe"; here are all calls of
// the backend that wait or that a replay would miss.
#include "tests/cuda_on_cpu/captures.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace llm::cuda_on_cpu {
namespace {

constexpr std::string_view kUnsafe[] = {
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "cudaFreeHost",
    "cudaEventQuery",
    "cudaEventSynchronize",
    "cudaStreamSynchronize",
};
// Wait for all streams, those that are captured included: forbidden in every mode and thread.
constexpr std::string_view kWaitsForAll = "cudaDeviceSynchronize";

}  // namespace

bool IsForbidden(const Capture& capture, const char* call) {
  if (call == kWaitsForAll) return true;
  if (std::find(std::begin(kUnsafe), std::end(kUnsafe), call) == std::end(kUnsafe)) return false;
  switch (capture.mode) {
    case cudaStreamCaptureModeGlobal:
      return true;
    case cudaStreamCaptureModeThreadLocal:
      return capture.thread == std::this_thread::get_id();
    case cudaStreamCaptureModeRelaxed:
      return false;
  }
  return true;
}

}  // namespace llm::cuda_on_cpu
