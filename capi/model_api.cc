// llm_model_*: opening, releasing, asking.
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/translate_model.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

using Opener = absl::FunctionRef<absl::StatusOr<std::unique_ptr<ModelFile>>(const LoaderLimits&)>;

absl::Status Open(Opener open_file, const llm_model_options* options, llm_model** model) {
  ModelOptions translated;
  LLM_RETURN_IF_ERROR(TranslateModelOptions(options, &translated));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, open_file(translated.limits));
  auto handle = std::make_unique<llm_model>();
  LLM_ASSIGN_OR_RETURN(handle->model, LoadedModel::Open(std::move(file), translated));
  *model = handle.release();
  return absl::OkStatus();
}

absl::Status ModelInfo(const llm_model* handle, llm_model_info* info) {
  LLM_RETURN_IF_NULL(handle);
  LLM_RETURN_IF_NULL(info);
  const LoadedModel& model = *handle->model;
  const ModelConfig& config = model.model().config;
  llm_model_info ours;
  llm_model_info_init(&ours);
  ours.vocab_size = config.vocab_size;
  ours.context_length = config.context_length;
  ours.hidden_size = config.hidden_size;
  ours.num_layers = config.num_layers;
  ours.bos_id = model.text().tokenizer->bos_id();
  ours.eos_id = model.text().tokenizer->eos_id();
  ours.has_chat_template = model.text().chat_template != nullptr ? 1 : 0;
  ours.weights_bytes = model.weights_bytes();
  ours.architecture = ToC(config.architecture);
  ours.kernels = ToC(model.model().kernels->name);
  ours.name = ToC(model.name());
  ours.tokenizer_bytes = model.text().tokenizer->size_bytes();
  ours.num_tensors = model.listing().tensors.size();
  ours.num_metadata = model.listing().metadata.size();
  const OpenTimes& times = model.times();
  ours.open_ns = static_cast<uint64_t>(times.model_ns);
  ours.header_ns = static_cast<uint64_t>(times.header_ns);
  ours.tokenizer_ns = static_cast<uint64_t>(times.tokenizer_ns);
  ours.read_ns = static_cast<uint64_t>(times.read_ns);
  ours.repack_ns = static_cast<uint64_t>(times.repack_ns);
  ours.check_ns = static_cast<uint64_t>(times.check_ns);
  return WriteStruct("llm_model_info", ours, info);
}

// A field of ours, or 0 and no bit.
template <typename T>
T Stated(const std::optional<T>& value, uint64_t bit, uint64_t* set) {
  if (value.has_value()) *set |= bit;
  return value.value_or(T{});
}

absl::Status Sampling(const llm_model* handle, llm_model_sampling* sampling) {
  LLM_RETURN_IF_NULL(handle);
  LLM_RETURN_IF_NULL(sampling);
  const SamplingDefaults& defaults = handle->model->sampling();
  llm_model_sampling ours;
  llm_model_sampling_init(&ours);
  ours.top_k = Stated(defaults.top_k, LLM_SAMPLING_TOP_K, &ours.set);
  ours.temperature = Stated(defaults.temperature, LLM_SAMPLING_TEMPERATURE, &ours.set);
  ours.top_p = Stated(defaults.top_p, LLM_SAMPLING_TOP_P, &ours.set);
  ours.min_p = Stated(defaults.min_p, LLM_SAMPLING_MIN_P, &ours.set);
  ours.repetition_penalty =
      Stated(defaults.repetition_penalty, LLM_SAMPLING_REPETITION_PENALTY, &ours.set);
  return WriteStruct("llm_model_sampling", ours, sampling);
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_model_open(const char* path, size_t path_size,
                                     const llm_model_options* options, llm_model** model) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(path);
    LLM_RETURN_IF_NULL(model);
    const auto open = [&](const llm::LoaderLimits& limits) {
      return llm::FileOfPath(path, path_size, limits);
    };
    return llm::Open(open, options, model);
  });
}

extern "C" llm_status llm_model_open_fd(int32_t fd, uint64_t offset, uint64_t size,
                                        const llm_model_options* options, llm_model** model) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(model);
    const auto open = [&](const llm::LoaderLimits&) {
      return llm::DescriptorModelFile(fd, offset, size);
    };
    return llm::Open(open, options, model);
  });
}

extern "C" llm_status llm_model_open_memory(const void* data, size_t size,
                                            const llm_model_options* options, llm_model** model) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(data);
    LLM_RETURN_IF_NULL(model);
    const auto open = [&](const llm::LoaderLimits&) {
      return llm::MemoryModelFile(data, size, "model in memory");
    };
    return llm::Open(open, options, model);
  });
}

extern "C" llm_status llm_model_open_reader(llm_read_callback read, void* user_data, uint64_t size,
                                            const llm_model_options* options, llm_model** model) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(read);
    LLM_RETURN_IF_NULL(model);
    const auto open = [&](const llm::LoaderLimits&) {
      return llm::CallbackModelFile(read, user_data, size);
    };
    return llm::Open(open, options, model);
  });
}

extern "C" void llm_model_release(llm_model* model) { delete model; }

extern "C" llm_status llm_model_get_info(const llm_model* model, llm_model_info* info) {
  return llm::Boundary([&] { return llm::ModelInfo(model, info); });
}

extern "C" llm_status llm_model_get_sampling(const llm_model* model, llm_model_sampling* sampling) {
  return llm::Boundary([&] { return llm::Sampling(model, sampling); });
}
