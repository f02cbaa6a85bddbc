// A stream's recorded work as an executable CUDA graph.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/step_uploads.h"
#include "src/tensor/device.h"

namespace llm {

class CudaGraph : public DeviceGraph {
 public:
  CudaGraph(int device, GraphExecOwner exec, StepUploads::Recording uploads)
      : device_(device), exec_(std::move(exec)), uploads_(std::move(uploads)) {}
  ~CudaGraph() override;

  // As DeviceStream has them.
  static absl::Status Begin(const CudaStream& stream);
  static absl::StatusOr<std::unique_ptr<DeviceGraph>> End(int device, const CudaStream& stream);
  absl::Status Launch(const CudaStream& stream) const;

 private:
  const int device_;
  GraphExecOwner exec_;
  const StepUploads::Recording uploads_;
};

}  // namespace llm
