// Config first, since it names the tensors; then the one part of the config that lies in a tensor.
#include "src/model/model.h"

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tensor/host_copy.h"

namespace llm {
namespace {

// Divides by factors that lie in tensor `name`.
absl::Status Divide(const float* tensor, const char* name, Device* device,
                    std::vector<float>* inv_freq) {
  std::vector<float> copy;
  LLM_ASSIGN_OR_RETURN(const auto factors, OnHost(device, {tensor, inv_freq->size()}, &copy));
  for (size_t i = 0; i < inv_freq->size(); ++i) {
    if (!(factors[i] > 0.0f)) {  // NaN too
      return absl::InvalidArgumentError(absl::StrCat("tensor ", name, ".weight: factor ", i, " is ",
                                                     factors[i], ", expected a positive number"));
    }
    (*inv_freq)[i] /= factors[i];
  }
  return absl::OkStatus();
}

absl::Status ApplyRopeFactors(const Weights& weights, Device* device, ModelConfig* config) {
  const TensorNames& names = config->names;
  for (RopeVariant& rope : config->ropes) {
    if (weights.rope_factors != nullptr) {
      LLM_RETURN_IF_ERROR(Divide(weights.rope_factors, names.rope_factors, device, &rope.inv_freq));
    }
    if (weights.long_rope_factors == nullptr) continue;
    rope.long_inv_freq = rope.inv_freq;
    LLM_RETURN_IF_ERROR(
        Divide(weights.short_rope_factors, names.short_rope_factors, device, &rope.inv_freq));
    LLM_RETURN_IF_ERROR(
        Divide(weights.long_rope_factors, names.long_rope_factors, device, &rope.long_inv_freq));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const WeightSource& source,
                                                 const WeightsOptions& options,
                                                 LoadProgress progress) {
  auto model = std::make_unique<Model>();
  model->kernels = options.kernels;
  model->device = options.device;
  LLM_ASSIGN_OR_RETURN(model->config, ReadModelConfig(source));
  LLM_ASSIGN_OR_RETURN(model->weights, LoadWeights(source, model->config, options, progress));
  LLM_RETURN_IF_ERROR(ApplyRopeFactors(model->weights, model->device.get(), &model->config));
  return model;
}

}  // namespace llm
