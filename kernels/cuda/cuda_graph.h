// A stream's recorded work as an executable CUDA graph.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/launch_stream.h"
#include "kernels/cuda/step_uploads.h"
#include "src/tensor/device.h"

namespace llm {

class CudaGraph : public DeviceGraph {
 public:
  // What has been recorded so far.
  struct Recording {
    explicit Recording(GraphOwner graph_in) : graph(std::move(graph_in)), work(graph.get()) {}
    GraphOwner graph;
    GraphRecording work;
  };

  CudaGraph(int device, GraphExecOwner exec, StepUploads::Recording uploads)
      : device_(device), exec_(std::move(exec)), uploads_(std::move(uploads)) {}
  ~CudaGraph() override;

  // From here on `uploads` records too, unless this fails, until its EndRecording.
  static absl::StatusOr<std::unique_ptr<Recording>> Begin(StepUploads* uploads);
  static absl::StatusOr<std::unique_ptr<DeviceGraph>> End(int device, const Recording& recording,
                                                          StepUploads::Recording uploads);
  absl::Status Launch(const CudaStream& stream) const;

 private:
  const int device_;
  GraphExecOwner exec_;
  const StepUploads::Recording uploads_;
};

}  // namespace llm
