// What the emulated streams record instead of running it.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cuda_on_cpu/shadow/cuda_runtime_api.h"

namespace llm::cuda_on_cpu {

// Pieces of work in the order of their stream. What was captured is never changed again: an
// executable graph, and its launches that are still to come, share it.
using GraphWork = std::vector<std::function<void()>>;

// One sequence of cudaStreamBeginCapture to cudaStreamEndCapture.
struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalidated = false;
  GraphWork work;
};

// Whether `call` may not be made by this thread while `capture` goes on: calls that wait, or whose
// effect no graph would repeat.
bool IsForbidden(const Capture& capture, const char* call);

}  // namespace llm::cuda_on_cpu
