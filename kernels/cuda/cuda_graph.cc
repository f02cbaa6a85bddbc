// Of the thread alone: what other threads of the host do meanwhile is neither recorded nor refused.
#include "kernels/cuda/cuda_graph.h"

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

// A call that fails may have ended the capture or not. A stream that goes on recording would do
// nothing any more: it is ended once again.
absl::StatusOr<GraphOwner> EndStreamCapture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const absl::Status status = CudaStatus("end of a graph", cudaStreamEndCapture(stream, &graph));
  if (status.ok()) return GraphOwner(graph);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  LLM_RETURN_IF_CUDA_ERROR("end of a graph", cudaStreamIsCapturing(stream, &capture));
  if (capture == cudaStreamCaptureStatusNone) return status;
  (void)CudaStatus("end of a graph", cudaStreamEndCapture(stream, &graph));
  GraphOwner(graph).Reset();
  return status;
}

}  // namespace

CudaGraph::~CudaGraph() {
  const ScopedCudaDevice scope(device_);
  exec_.Reset();
}

absl::Status CudaGraph::Begin(const CudaStream& stream) {
  stream.uploads->BeginRecording();  // which may throw, before the stream does
  const absl::Status begun = CudaStatus(
      "begin of a graph", cudaStreamBeginCapture(stream.stream, cudaStreamCaptureModeThreadLocal));
  if (!begun.ok()) stream.uploads->EndRecording();
  return begun;
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> CudaGraph::End(int device, const CudaStream& stream) {
  StepUploads::Recording uploads = stream.uploads->EndRecording();
  LLM_ASSIGN_OR_RETURN(const GraphOwner graph, EndStreamCapture(stream.stream));
  cudaGraphExec_t exec = nullptr;
  LLM_RETURN_IF_CUDA_ERROR("graph", cudaGraphInstantiate(&exec, graph.get(), 0));
  return std::make_unique<CudaGraph>(device, GraphExecOwner(exec), std::move(uploads));
}

absl::Status CudaGraph::Launch(const CudaStream& stream) const {
  LLM_RETURN_IF_ERROR(stream.uploads->Replay(uploads_, stream.stream));
  return CudaStatus("graph", cudaGraphLaunch(exec_.get(), stream.stream));
}

}  // namespace llm
