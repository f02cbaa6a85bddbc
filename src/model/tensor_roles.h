// What each tensor of a model is for, as far as a choice of weight formats asks.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "src/loader/weight_source.h"
#include "src/model/model_config.h"

namespace llm {

enum class TensorRole {
  kOther,  // vectors and routers, which are small and decide much
  kLinear,
  kExperts,
  kEmbedding,
  kHead,
};

// In the order of source.tensors(). Errors as WeightsBytes' of a model file.
absl::StatusOr<std::vector<TensorRole>> FindTensorRoles(const WeightSource& source,
                                                        const ModelConfig& config);

}  // namespace llm
