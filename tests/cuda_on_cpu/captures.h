// Captures of streams, as hosts make them beside us: which of our calls end them.
#pragma once

#include <thread>

#include "tests/cuda_on_cpu/graph_work.h"
#include "tests/cuda_on_cpu/shadow/cuda_runtime_api.h"

namespace llm::cuda_on_cpu {

// One sequence of cudaStreamBeginCapture to cudaStreamEndCapture.
struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalidated = false;
  GraphWork work;
};

// Of the calling thread: which captures it minds.
cudaStreamCaptureMode& thread_capture_mode();

// Whether `call` may not be made by this thread while `capture` goes on: calls that wait, or whose
// effect no graph would repeat.
bool IsForbidden(const Capture& capture, const char* call);

}  // namespace llm::cuda_on_cpu
