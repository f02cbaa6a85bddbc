// Reads the caller's options once.
#include "capi/translate_model.h"

#include "absl/strings/str_cat.h"
#include "capi/boundary.h"
#include "capi/strings.h"
#include "capi/translate_host.h"
#include "capi/translate_weights.h"
#include "capi/versioned_struct.h"
#include "src/base/status_macros.h"
#include "src/engine/directory_model.h"

namespace llm {
namespace {

void SetLimit(uint64_t given, uint64_t* limit) {
  if (given != 0) *limit = given;
}

absl::Status TranslateLimits(const llm_limits* given, ModelOptions* options) {
  if (given == nullptr) return absl::OkStatus();
  llm_limits c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_limits", given, &c));
  if (c.reserved != 0) return absl::UnimplementedError("limits: reserved is not 0");
  SetLimit(c.max_header_bytes, &options->limits.max_header_bytes);
  SetLimit(c.max_tensors, &options->limits.max_tensors);
  SetLimit(c.max_metadata_entries, &options->limits.max_metadata_entries);
  SetLimit(c.max_array_elements, &options->limits.max_array_elements);
  SetLimit(c.max_string_bytes, &options->limits.max_string_bytes);
  SetLimit(c.max_template_bytes, &options->max_template_bytes);
  return absl::OkStatus();
}

}  // namespace

absl::Status TranslateModelOptions(const llm_model_options* given, ModelOptions* options) {
  llm_model_options c;
  llm_model_options_init(&c);
  if (given != nullptr) LLM_RETURN_IF_ERROR(ReadStruct("llm_model_options", given, &c));
  if (c.device > LLM_DEVICE_SIM) {
    return absl::InvalidArgumentError(absl::StrCat("device: ", c.device, " is unknown"));
  }
  if (c.reserved != 0) return absl::UnimplementedError("model options: reserved is not 0");
  if (c.device_index != 0 && (c.device == LLM_DEVICE_CPU || c.device == LLM_DEVICE_SIM)) {
    return absl::InvalidArgumentError(
        absl::StrCat("device_index: ", c.device_index, " names a GPU, and device is none"));
  }
  options->device_index = c.device_index;
  if (c.num_threads > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_threads: ", c.num_threads, " exceeds 1024"));
  }
  LLM_RETURN_IF_ERROR(CheckArray("kernels", c.kernels.data, c.kernels.size));
  LLM_RETURN_IF_ERROR(
      ReadSwitch("float_activations", c.float_activations, false, &options->float_activations));
  LLM_RETURN_IF_ERROR(TranslateLimits(c.limits, options));
  options->simulated = c.device == LLM_DEVICE_SIM;
  options->device = c.device == LLM_DEVICE_CPU    ? DeviceChoice::kCpu
                    : c.device == LLM_DEVICE_CUDA ? DeviceChoice::kCuda
                                                  : DeviceChoice::kDefault;
  LLM_RETURN_IF_ERROR(ReadSwitch("header_only", c.header_only, false, &options->header_only));
  LLM_RETURN_IF_ERROR(ReadSwitch("map_pack", c.map_pack, false, &options->map_pack));
  LLM_RETURN_IF_ERROR(ReadSwitch("verify_pack", c.verify_pack, false, &options->verify_pack));
  LLM_RETURN_IF_ERROR(TranslateWeights(c, options));
  LLM_RETURN_IF_ERROR(TranslateHost(c.host, &options->host));
  options->num_threads =
      static_cast<int>(c.num_threads != 0 ? c.num_threads : ThreadsOfCpus(options->host));
  options->kernels = std::string(FromC(c.kernels));
  options->max_memory_bytes = c.max_memory_bytes;
  options->logger = Logger(c.log, c.log_user_data);
  options->progress = c.progress;
  options->progress_user_data = c.progress_user_data;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ModelFile>> FileOfPath(const char* path, size_t path_size,
                                                      const LoaderLimits& limits) {
  LLM_ASSIGN_OR_RETURN(const std::string path_string, PathFromC(path, path_size));
  return OpenModelPath(path_string, limits);
}

absl::StatusOr<std::unique_ptr<ModelFile>> FileOfSource(const llm_model_source& source,
                                                        const LoaderLimits& limits) {
  llm_model_source c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_model_source", &source, &c));
  if (c.reserved != 0) return absl::UnimplementedError("source: reserved is not 0");
  switch (c.kind) {
    case LLM_SOURCE_PATH:
      LLM_RETURN_IF_ERROR(CheckArray("path", c.path.data, c.path.size));
      return FileOfPath(c.path.data, c.path.size, limits);
    case LLM_SOURCE_FD:
      return DescriptorModelFile(c.fd, c.offset, c.size);
    case LLM_SOURCE_MEMORY:
      LLM_RETURN_IF_NULL(c.data);
      return MemoryModelFile(c.data, c.size, "model in memory");
    case LLM_SOURCE_READER:
      LLM_RETURN_IF_NULL(c.read);
      return CallbackModelFile(c.read, c.user_data, c.size);
    default:
      return absl::InvalidArgumentError(absl::StrCat("source: kind ", c.kind, " is unknown"));
  }
}

}  // namespace llm
