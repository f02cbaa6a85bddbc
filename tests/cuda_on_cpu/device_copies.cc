// One stream and one step for each op.
#include "tests/cuda_on_cpu/device_copies.h"

#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr size_t kUploadBytes = size_t{1} << 20;

}  // namespace

DeviceCopies::DeviceCopies() {
  absl::StatusOr<StreamOwner> stream = CreateStream();
  absl::StatusOr<OwnedUploads> uploads = OwnedUploads::Create(kUploadBytes);
  failure_ = stream.status();
  failure_.Update(uploads.status());
  if (!failure_.ok()) return;
  owned_stream_ = *std::move(stream);
  uploads_ = *std::move(uploads);
  stream_ = {owned_stream_.get(), uploads_.uploads.get()};
}

void* DeviceCopies::Copy(const void* host, size_t bytes, bool is_result) {
  if (host == nullptr || !failure_.ok()) return nullptr;
  if (bytes == 0) return const_cast<void*>(host);  // not null, and a fault where it is read
  const auto [found, is_new] = operands_.try_emplace(host);
  Operand& operand = found->second;
  operand.is_result = operand.is_result || is_result;
  if (!is_new) return operand.memory.get();
  absl::StatusOr<DeviceMemoryOwner> memory = AllocateDevice(bytes, "operand");
  failure_ = memory.status();
  if (!failure_.ok()) return nullptr;
  operand.memory = *std::move(memory);
  operand.bytes = bytes;
  failure_ = CudaStatus("operand", cudaMemcpyAsync(operand.memory.get(), host, bytes,
                                                   cudaMemcpyHostToDevice, stream_.stream.stream));
  return operand.memory.get();
}

Activations DeviceCopies::InOut(const Activations& a) {
  const auto size = static_cast<size_t>(a.rows * a.cols);
  Activations copy = a;
  copy.values = InOut(a.values, size);
  copy.quants = InOut(a.quants, size);
  copy.scales = InOut(a.scales, size / kActivationGroup);
  copy.sums = InOut(a.sums, size / kActivationSumGroup);
  return copy;
}

absl::Status DeviceCopies::Finish(const absl::Status& op) {
  LLM_RETURN_IF_ERROR(failure_);
  LLM_RETURN_IF_ERROR(op);
  LLM_RETURN_IF_CUDA_ERROR("wait", cudaStreamSynchronize(stream_.stream.stream));
  for (const auto& [host, operand] : operands_) {
    if (!operand.is_result) continue;
    LLM_RETURN_IF_CUDA_ERROR(
        "result", cudaMemcpyAsync(const_cast<void*>(host), operand.memory.get(), operand.bytes,
                                  cudaMemcpyDeviceToHost, stream_.stream.stream));
  }
  return CudaStatus("results", cudaStreamSynchronize(stream_.stream.stream));
}

}  // namespace llm
