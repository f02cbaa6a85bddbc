// A GPU as the library's Device: memory through the runtime, a stream with a step's uploads.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_graph.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/dense_linear.h"
#include "kernels/cuda/device_buffer.h"
#include "src/tensor/device.h"

namespace llm {

// Makes a device the calling thread's for as long as it lives, and then gives the thread back the
// one that its owner chose. Meanwhile a capture of the host's own streams, in this thread or
// another, neither refuses our calls nor is ended by them.
class ScopedCudaDevice {
 public:
  explicit ScopedCudaDevice(int index);
  ~ScopedCudaDevice();
  ScopedCudaDevice(const ScopedCudaDevice&) = delete;
  ScopedCudaDevice& operator=(const ScopedCudaDevice&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  int before_ = -1;  // -1: nothing to give back
  bool mode_is_ours_ = false;
  cudaStreamCaptureMode mode_;  // then, the thread's before
  absl::Status status_;
};

class CudaDeviceStream : public DeviceStream {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceStream>> Create(int index,
                                                              const UploadMemory& uploads);
  ~CudaDeviceStream() override;

  absl::Status Begin(bool ahead) override;
  absl::Status UseLibrary(std::byte* memory, size_t bytes) override;
  absl::Status CopyIn(void* to, const void* from, size_t bytes) override;
  absl::Status CopyOut(void* to, const void* from, size_t bytes) override;
  absl::Status CopyWithin(void* to, const void* from, size_t bytes) override;
  std::vector<std::string> TakeNotices() override;
  absl::Status Clear(void* memory, size_t bytes) override;
  absl::Status Wait() override;
  absl::Status Mark(int mark) override;
  absl::Status WaitFor(int mark) override;
  absl::StatusOr<int64_t> NsBetween(int begin, int end) override;
  absl::Status BeginRecording() override;
  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() override;
  absl::Status Launch(const DeviceGraph& graph) override;

  int index() const { return index_; }
  CudaStream launches() const {
    GraphRecording* const recording = recording_ == nullptr ? nullptr : &recording_->work;
    return {{stream_.get(), recording}, uploads_.get(), dense_.get(), rounded_, rounded_bytes_};
  }

 private:
  CudaDeviceStream(int index, const UploadMemory& memory)
      : index_(index), rounded_(memory.rounded), rounded_bytes_(memory.rounded_bytes) {}
  // Makes sure that what is done at once is not meant for a graph.
  absl::Status CheckDone(const char* what) const;
  absl::Status Copy(const char* what, void* to, const void* from, size_t bytes,
                    cudaMemcpyKind kind);

  const int index_;
  std::byte* const rounded_;
  const size_t rounded_bytes_;
  StreamOwner stream_;
  EventOwner marks_[kNumMarks];
  std::unique_ptr<StepUploads> uploads_;
  std::unique_ptr<DenseLinear> dense_;  // null: linear layers have kernels of their own alone
  std::unique_ptr<CudaGraph::Recording> recording_;  // null: work is done
};

// One of CudaDevices() by its place there. UNAVAILABLE, saying why, when there is none;
// INVALID_ARGUMENT, saying how many there are, when there are fewer.
absl::StatusOr<std::shared_ptr<Device>> OpenCudaDevice(uint32_t index);

}  // namespace llm
