// llm_model_*: opening, releasing, asking.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status TranslateOptions(const llm_model_options* given, ModelOptions* options) {
  llm_model_options c;
  llm_model_options_init(&c);
  if (given != nullptr) LLM_RETURN_IF_ERROR(ReadStruct("llm_model_options", given, &c));
  if (c.device == LLM_DEVICE_CUDA || c.device == LLM_DEVICE_SIM) {
    return absl::UnimplementedError(absl::StrCat("device: ", c.device, " is not in this build"));
  }
  if (c.device > LLM_DEVICE_SIM) {
    return absl::InvalidArgumentError(absl::StrCat("device: ", c.device, " is unknown"));
  }
  if (c.num_threads > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_threads: ", c.num_threads, " exceeds 1024"));
  }
  LLM_RETURN_IF_ERROR(CheckArray("kernels", c.kernels.data, c.kernels.size));
  LLM_RETURN_IF_ERROR(
      ReadSwitch("float_activations", c.float_activations, false, &options->float_activations));
  options->num_threads = static_cast<int>(c.num_threads);
  options->kernels = std::string(FromC(c.kernels));
  options->max_memory_bytes = c.max_memory_bytes;
  options->logger = Logger(c.log, c.log_user_data);
  return absl::OkStatus();
}

absl::Status OpenModel(const char* path, size_t path_size, const llm_model_options* options,
                       llm_model** model) {
  LLM_RETURN_IF_NULL(path);
  LLM_RETURN_IF_NULL(model);
  if (path_size == 0 || path_size > 4096) {
    return absl::InvalidArgumentError("path_size: not in [1, 4096]");
  }
  const std::string path_string(path, path_size);
  if (path_string.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("path: contains a zero byte");
  }
  ModelOptions translated;
  LLM_RETURN_IF_ERROR(TranslateOptions(options, &translated));
  auto handle = std::make_unique<llm_model>();
  LLM_ASSIGN_OR_RETURN(handle->model, LoadedModel::Open(path_string, translated));
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
  return WriteStruct("llm_model_info", ours, info);
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_model_open(const char* path, size_t path_size,
                                     const llm_model_options* options, llm_model** model) {
  return llm::Boundary([&] { return llm::OpenModel(path, path_size, options, model); });
}

extern "C" void llm_model_release(llm_model* model) { delete model; }

extern "C" llm_status llm_model_get_info(const llm_model* model, llm_model_info* info) {
  return llm::Boundary([&] { return llm::ModelInfo(model, info); });
}
