// Where kernels go: to a stream, or into the graph that is being made of a stream's work. Compiled
// by nvcc: no Abseil here.
#pragma once

#include <cuda_runtime_api.h>

namespace llm {

// A graph while it is made by hand, work after work. No stream captures anything: while one did,
// calls of the host's own that wait for the device would fail, in whatever thread.
class GraphRecording {
 public:
  // The graph outlives this.
  explicit GraphRecording(cudaGraph_t graph) : graph_(graph) {}

  // Comes after all that was added before. The kernel's arguments are copied.
  cudaError_t Add(const cudaKernelNodeParams& kernel);

 private:
  const cudaGraph_t graph_;
  cudaGraphNode_t last_ = nullptr;
};

// No cudaStream_t by itself: what does not go through `Launch` would be done instead of recorded.
struct LaunchStream {
  LaunchStream(cudaStream_t stream_in, GraphRecording* recording_in = nullptr)  // NOLINT: a stream
      : stream(stream_in), recording(recording_in) {}

  cudaStream_t stream;
  GraphRecording* recording;  // null: work is done
};

}  // namespace llm
