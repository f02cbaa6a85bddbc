// The runtime's own description of the work is made at the end, and takes device memory.
#include "kernels/cuda/cuda_graph.h"

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm {

CudaGraph::~CudaGraph() {
  const ScopedCudaDevice scope(device_);
  exec_.Reset();
}

absl::StatusOr<std::unique_ptr<CudaGraph::Recording>> CudaGraph::Begin(StepUploads* uploads) {
  cudaGraph_t graph = nullptr;
  LLM_RETURN_IF_CUDA_ERROR("begin of a graph", cudaGraphCreate(&graph, 0));
  auto recording = std::make_unique<Recording>(GraphOwner(graph));
  uploads->BeginRecording();
  return recording;
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> CudaGraph::End(int device, const Recording& recording,
                                                            StepUploads::Recording uploads) {
  cudaGraphExec_t exec = nullptr;
  LLM_RETURN_IF_CUDA_ERROR("graph", cudaGraphInstantiate(&exec, recording.graph.get(), 0));
  return std::make_unique<CudaGraph>(device, GraphExecOwner(exec), std::move(uploads));
}

absl::Status CudaGraph::Launch(const CudaStream& stream) const {
  LLM_RETURN_IF_ERROR(stream.uploads->Replay(uploads_, stream.stream.stream));
  return CudaStatus("graph", cudaGraphLaunch(exec_.get(), stream.stream.stream));
}

}  // namespace llm
