// Every call is made with the GPU as the thread's current one, which is the host's choice
// otherwise.
#include "kernels/cuda/cuda_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/devices.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

class CudaGpu : public Device {
 public:
  explicit CudaGpu(const CudaDevice& device)
      : index_(device.index),
        name_(absl::StrCat("CUDA device ", device.index, " (sm_", device.major, device.minor, ", ",
                           device.num_multiprocessors, " multiprocessors)")) {}

  const std::string& name() const override { return name_; }

  absl::StatusOr<size_t> FreeBytes() const override {
    const ScopedCudaDevice scope(index_);
    LLM_RETURN_IF_ERROR(scope.status());
    size_t free_bytes = 0, total_bytes = 0;
    LLM_RETURN_IF_CUDA_ERROR("device memory", cudaMemGetInfo(&free_bytes, &total_bytes));
    return free_bytes;
  }

  absl::StatusOr<std::byte*> Allocate(size_t bytes, absl::string_view what) override {
    const ScopedCudaDevice scope(index_);
    LLM_RETURN_IF_ERROR(scope.status());
    absl::StatusOr<DeviceMemoryOwner> memory = AllocateDevice(bytes, std::string(what).c_str());
    if (memory.ok()) return static_cast<std::byte*>(memory->Release());
    if (!absl::IsResourceExhausted(memory.status())) return memory.status();
    const absl::StatusOr<size_t> free_bytes = FreeBytes();
    return absl::ResourceExhaustedError(absl::StrCat(
        memory.status().message(), ", ", free_bytes.ok() ? *free_bytes : 0, " bytes are free"));
  }

  void Free(std::byte* memory) override {
    const ScopedCudaDevice scope(index_);
    DeviceMemoryOwner(memory).Reset();
  }

  absl::StatusOr<std::byte*> AllocatePinned(size_t bytes, absl::string_view what) override {
    const ScopedCudaDevice scope(index_);
    LLM_RETURN_IF_ERROR(scope.status());
    LLM_ASSIGN_OR_RETURN(PinnedMemoryOwner memory,
                         ::llm::AllocatePinned(bytes, std::string(what).c_str()));
    return static_cast<std::byte*>(memory.Release());
  }

  void FreePinned(std::byte* memory) override {
    const ScopedCudaDevice scope(index_);
    PinnedMemoryOwner(memory).Reset();
  }

  absl::StatusOr<std::unique_ptr<DeviceStream>> CreateStream(const UploadMemory& uploads) override {
    return CudaDeviceStream::Create(index_, uploads);
  }

 private:
  const int index_;
  const std::string name_;
};

}  // namespace

ScopedCudaDevice::ScopedCudaDevice(int index) : mode_(cudaStreamCaptureModeRelaxed) {
  status_ = CudaStatus("mode of captures", cudaThreadExchangeStreamCaptureMode(&mode_));
  if (!status_.ok()) return;
  mode_is_ours_ = true;
  int current = 0;
  status_ = CudaStatus("current device", cudaGetDevice(&current));
  if (!status_.ok() || current == index) return;
  status_ = CudaStatus("current device", cudaSetDevice(index));
  if (status_.ok()) before_ = current;
}

ScopedCudaDevice::~ScopedCudaDevice() {
  if (before_ >= 0) (void)CudaStatus("current device", cudaSetDevice(before_));
  if (mode_is_ours_) (void)CudaStatus("captures", cudaThreadExchangeStreamCaptureMode(&mode_));
}

absl::StatusOr<std::unique_ptr<DeviceStream>> CudaDeviceStream::Create(
    int index, const UploadMemory& uploads) {
  const ScopedCudaDevice scope(index);
  LLM_RETURN_IF_ERROR(scope.status());
  std::unique_ptr<CudaDeviceStream> stream(new CudaDeviceStream(index, uploads));
  LLM_ASSIGN_OR_RETURN(stream->stream_, ::llm::CreateStream());
  for (EventOwner& mark : stream->marks_) {
    LLM_ASSIGN_OR_RETURN(mark, CreateTimedEvent());
  }
  LLM_ASSIGN_OR_RETURN(stream->uploads_, StepUploads::Create(uploads));
  return stream;
}

CudaDeviceStream::~CudaDeviceStream() {
  const ScopedCudaDevice scope(index_);
  // Memory that its work uses goes back next.
  if (stream_.get() != nullptr) (void)CudaStatus("end", cudaStreamSynchronize(stream_.get()));
  stream_.Reset();
  for (EventOwner& mark : marks_) mark.Reset();
  uploads_.reset();
  dense_.reset();
}

absl::Status CudaDeviceStream::UseLibrary(std::byte* memory, size_t bytes) {
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  LLM_ASSIGN_OR_RETURN(dense_, DenseLinear::Create(memory, bytes));
  return absl::OkStatus();
}

absl::Status CudaDeviceStream::Begin(bool ahead) {
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  recording_.reset();
  return uploads_->Begin(ahead);
}

absl::Status CudaDeviceStream::CheckDone(const char* what) const {
  if (recording_ == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(what, ": graphs are of kernels alone"));
}

absl::Status CudaDeviceStream::Copy(const char* what, void* to, const void* from, size_t bytes,
                                    cudaMemcpyKind kind) {
  LLM_RETURN_IF_ERROR(CheckDone(what));
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  return CudaStatus(what, cudaMemcpyAsync(to, from, bytes, kind, stream_.get()));
}

absl::Status CudaDeviceStream::CopyIn(void* to, const void* from, size_t bytes) {
  return Copy("copy to the device", to, from, bytes, cudaMemcpyHostToDevice);
}

absl::Status CudaDeviceStream::CopyOut(void* to, const void* from, size_t bytes) {
  return Copy("copy from the device", to, from, bytes, cudaMemcpyDeviceToHost);
}

absl::Status CudaDeviceStream::CopyWithin(void* to, const void* from, size_t bytes) {
  return Copy("copy within the device", to, from, bytes, cudaMemcpyDeviceToDevice);
}

std::vector<std::string> CudaDeviceStream::TakeNotices() {
  if (dense_ == nullptr) return {};
  return dense_->TakeNotices();
}

absl::Status CudaDeviceStream::Clear(void* memory, size_t bytes) {
  LLM_RETURN_IF_ERROR(CheckDone("clear"));
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  return CudaStatus("clear", cudaMemsetAsync(memory, 0, bytes, stream_.get()));
}

absl::Status CudaDeviceStream::Wait() {
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  return CudaStatus("wait for the device", cudaStreamSynchronize(stream_.get()));
}

absl::Status CudaDeviceStream::Mark(int mark) {
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  return CudaStatus("mark", cudaEventRecord(marks_[mark].get(), stream_.get()));
}

absl::Status CudaDeviceStream::WaitFor(int mark) {
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  return CudaStatus("wait for the device", cudaEventSynchronize(marks_[mark].get()));
}

absl::StatusOr<int64_t> CudaDeviceStream::NsBetween(int begin, int end) {
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  float milliseconds = 0;
  LLM_RETURN_IF_CUDA_ERROR(
      "time of a step",
      cudaEventElapsedTime(&milliseconds, marks_[begin].get(), marks_[end].get()));
  return static_cast<int64_t>(double{milliseconds} * 1e6);
}

absl::Status CudaDeviceStream::BeginRecording() {
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  LLM_ASSIGN_OR_RETURN(recording_, CudaGraph::Begin(uploads_.get()));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> CudaDeviceStream::EndRecording() {
  if (recording_ == nullptr) return absl::FailedPreconditionError("graph: none was begun");
  // Whatever fails here, the next work is done and not recorded.
  const std::unique_ptr<CudaGraph::Recording> recording = std::move(recording_);
  StepUploads::Recording uploads = uploads_->EndRecording();
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  return CudaGraph::End(index_, *recording, std::move(uploads));
}

absl::Status CudaDeviceStream::Launch(const DeviceGraph& graph) {
  const ScopedCudaDevice scope(index_);
  LLM_RETURN_IF_ERROR(scope.status());
  return static_cast<const CudaGraph&>(graph).Launch(launches());
}

absl::StatusOr<std::shared_ptr<Device>> OpenCudaDevice(uint32_t index) {
  LLM_ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices, CudaDevices());
  if (index < devices.size()) return std::make_shared<CudaGpu>(devices[index]);
  return absl::InvalidArgumentError(absl::StrCat(
      "device_index ", index, ": GPUs that can be used: ", devices.size(), ", numbered from 0"));
}

}  // namespace llm
