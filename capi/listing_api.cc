// llm_model_tensor and llm_model_metadata.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status CheckIndex(uint64_t index, size_t count, absl::string_view what) {
  if (index < count) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("index: ", index, " of ", count, " ", what, " in the model file"));
}

absl::Status Tensor(const llm_model* model, uint64_t index, llm_tensor_info* info) {
  LLM_RETURN_IF_NULL(model);
  LLM_RETURN_IF_NULL(info);
  const std::vector<ListedTensor>& tensors = model->model->listing().tensors;
  LLM_RETURN_IF_ERROR(CheckIndex(index, tensors.size(), "tensors"));
  const ListedTensor& tensor = tensors[index];
  llm_tensor_info ours;
  llm_tensor_info_init(&ours);
  ours.num_dims = static_cast<uint32_t>(tensor.num_dims);
  std::copy(tensor.shape.begin(), tensor.shape.end(), ours.shape);
  ours.file_offset = tensor.file_offset;
  ours.size_bytes = tensor.size_bytes;
  ours.name = ToC(tensor.name);
  ours.type = ToC(tensor.type);
  return WriteStruct("llm_tensor_info", ours, info);
}

absl::Status MetadataEntry(const llm_model* model, uint64_t index, llm_string* key,
                           llm_string* value) {
  LLM_RETURN_IF_NULL(model);
  LLM_RETURN_IF_NULL(key);
  LLM_RETURN_IF_NULL(value);
  const std::vector<ListedMetadata>& metadata = model->model->listing().metadata;
  LLM_RETURN_IF_ERROR(CheckIndex(index, metadata.size(), "metadata keys"));
  *key = ToC(metadata[index].key);
  *value = ToC(metadata[index].value);
  return absl::OkStatus();
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_model_tensor(const llm_model* model, uint64_t index,
                                       llm_tensor_info* info) {
  return llm::Boundary([&] { return llm::Tensor(model, index, info); });
}

extern "C" llm_status llm_model_metadata(const llm_model* model, uint64_t index, llm_string* key,
                                         llm_string* value) {
  return llm::Boundary([&] { return llm::MetadataEntry(model, index, key, value); });
}
