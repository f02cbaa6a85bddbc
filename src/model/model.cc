// Config first, since it names the tensors; then the one part of the config that lies in a tensor.
#include "src/model/model.h"

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status ApplyRopeFactors(const float* factors, ModelConfig* config) {
  for (RopeVariant& rope : config->ropes) {
    for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
      if (!(factors[i] > 0.0f)) {  // NaN too
        return absl::InvalidArgumentError(absl::StrCat("tensor ", config->names.rope_factors,
                                                       ".weight: factor ", i, " is ", factors[i],
                                                       ", expected a positive number"));
      }
      rope.inv_freq[i] /= factors[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const WeightSource& source,
                                                 const WeightsOptions& options,
                                                 LoadProgress progress) {
  auto model = std::make_unique<Model>();
  model->kernels = options.kernels;
  LLM_ASSIGN_OR_RETURN(model->config, ReadModelConfig(source));
  LLM_ASSIGN_OR_RETURN(model->weights, LoadWeights(source, model->config, options, progress));
  if (model->weights.rope_factors != nullptr) {
    LLM_RETURN_IF_ERROR(ApplyRopeFactors(model->weights.rope_factors, &model->config));
  }
  return model;
}

}  // namespace llm
