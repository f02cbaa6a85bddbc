// The reference names cudaMalloc and cudaEventQuery as "potentially unsafe"; here are all calls of
// the backend that wait, load a kernel, or that a replay would miss.
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
    "LoadKernel",
    "cudaGraphInstantiate",
};
// Wait for all streams, those that are captured included: forbidden in every mode and thread.
constexpr std::string_view kWaitsForAll = "cudaDeviceSynchronize";

}  // namespace

cudaStreamCaptureMode& thread_capture_mode() {
  static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

bool IsForbidden(const Capture& capture, const char* call) {
  if (call == kWaitsForAll) return true;
  if (std::find(std::begin(kUnsafe), std::end(kUnsafe), call) == std::end(kUnsafe)) return false;
  // The thread's own mode says which captures it minds, a capture's mode which threads.
  const bool is_own = capture.thread == std::this_thread::get_id();
  switch (thread_capture_mode()) {
    case cudaStreamCaptureModeGlobal:
      return is_own ? capture.mode != cudaStreamCaptureModeRelaxed
                    : capture.mode == cudaStreamCaptureModeGlobal;
    case cudaStreamCaptureModeThreadLocal:
      return is_own && capture.mode != cudaStreamCaptureModeRelaxed;
    case cudaStreamCaptureModeRelaxed:
      return false;
  }
  return true;
}

}  // namespace llm::cuda_on_cpu
