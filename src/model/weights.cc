// What is wrong with a file shows before memory is taken for its weights.
#include "src/model/weights.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/model/input_order.h"
#include "src/model/kernel_support.h"
#include "src/model/packed_image.h"
#include "src/model/tensor_list.h"
#include "src/model/weight_packer.h"

namespace llm {
namespace {

int64_t NumElements(const TensorInfo& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  return count;
}

// The bytes that a tensor occupies follow from its shape, which was checked; a source that says
// otherwise is broken.
absl::Status CheckTensorBytes(const TensorSlot& slot) {
  const WeightFormatInfo& info = GetWeightFormat(slot.tensor->format);
  const int64_t cols = slot.tensor->shape.back();
  const int64_t expected = NumElements(*slot.tensor) / cols * RowBytes(info, cols);
  if (slot.tensor->size_bytes == static_cast<uint64_t>(expected)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor ", slot.tensor->name, ": expected ",
                                                 expected, " bytes, file has ",
                                                 slot.tensor->size_bytes));
}

absl::Status CheckSource(const WeightSource& source, const ModelConfig& config,
                         const TensorList& list, const KernelTable& kernels) {
  LLM_RETURN_IF_ERROR(CheckKernels(list, config, kernels));
  if (source.packed() != nullptr) return CheckImage(source, list, kernels);
  for (const TensorSlot& slot : list.slots) LLM_RETURN_IF_ERROR(CheckTensorBytes(slot));
  return absl::OkStatus();
}

// What lies between tensors counts in a model's identity.
void ClearGaps(const TensorList& list, std::byte* bytes) {
  for (size_t i = 0; i < list.slots.size(); ++i) {
    const size_t end = list.slots[i].offset + list.slots[i].size_bytes;
    const size_t next = i + 1 < list.slots.size() ? list.slots[i + 1].offset : list.total_bytes;
    std::memset(bytes + end, 0, next - end);
  }
}

absl::Status ClearOn(Device* device, const Buffer& storage) {
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceStream> stream, device->CreateStream({}));
  LLM_RETURN_IF_ERROR(stream->Clear(storage.data(), storage.size()));
  return stream->Wait();
}

absl::Status PackWeights(const WeightSource& source, const TensorList& list,
                         const WeightsOptions& options, LoadProgress progress, Weights* weights) {
  if (options.map || options.verify) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.map ? "map_pack" : "verify_pack", ": the model is no pack"));
  }
  LLM_ASSIGN_OR_RETURN(weights->storage, Buffer::AllocateOn(options.device.get(), options.allocator,
                                                            list.total_bytes, "weights"));
  weights->storage.AdviseHugePages();
  weights->bytes = absl::MakeConstSpan(weights->storage.data(), list.total_bytes);
  if (options.device != nullptr) {
    LLM_RETURN_IF_ERROR(ClearOn(options.device.get(), weights->storage));
  } else {
    ClearGaps(list, weights->storage.data());
  }
  return PackTensors(source, list, options, progress, weights);
}

}  // namespace

absl::StatusOr<size_t> WeightsBytes(const WeightSource& source, const ModelConfig& config,
                                    const KernelTable& kernels) {
  LLM_ASSIGN_OR_RETURN(const LoadBytes bytes, PlanLoad(source, config, kernels, 1));
  return bytes.weights;
}

absl::StatusOr<LoadBytes> PlanLoad(const WeightSource& source, const ModelConfig& config,
                                   const KernelTable& kernels, int num_threads) {
  Weights weights;
  LLM_ASSIGN_OR_RETURN(const TensorList list,
                       ListTensors(source, config, kernels.packed_bytes, &weights));
  LLM_RETURN_IF_ERROR(CheckSource(source, config, list, kernels));
  LoadBytes bytes;
  bytes.weights = list.total_bytes;
  const bool to_device = kernels.open_device != nullptr;
  if (source.packed() != nullptr) {
    bytes.staging = to_device ? ImageStagingBytes(num_threads) : 0;
    return bytes;
  }
  LLM_ASSIGN_OR_RETURN(bytes.staging, PackingBytes(list, kernels, to_device, num_threads));
  return bytes;
}

absl::StatusOr<Weights> LoadWeights(const WeightSource& source, const ModelConfig& config,
                                    const WeightsOptions& options, LoadProgress progress) {
  Weights weights;
  LLM_ASSIGN_OR_RETURN(const TensorList list,
                       ListTensors(source, config, options.kernels->packed_bytes, &weights));
  LLM_RETURN_IF_ERROR(CheckSource(source, config, list, *options.kernels));
  LLM_RETURN_IF_ERROR(source.packed() != nullptr
                          ? LoadImage(source, options, progress, &weights)
                          : PackWeights(source, list, options, progress, &weights));
  for (const TensorSlot& slot : list.slots) {
    const std::byte* data = weights.bytes.data() + slot.offset;
    if (slot.matrix != nullptr) {
      slot.matrix->data = data;
    } else {
      *slot.vector = reinterpret_cast<const float*>(data);
    }
  }
  for (const RowSlice& slice : list.slices) {
    slice.part->data = slice.whole->data + slice.offset;
    slice.part->row_scales = slice.whole->row_scales;
  }
  if (config.tied_embeddings) weights.head = weights.embedding;
  LLM_RETURN_IF_ERROR(CheckInputOrders(weights, config, options.device.get()));
  return weights;
}

}  // namespace llm
