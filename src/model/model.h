// A loaded model: config and packed weights. Immutable, shared by engines.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "src/loader/weight_source.h"
#include "src/model/model_config.h"
#include "src/model/weights.h"

namespace llm {

struct Model {
  ModelConfig config;
  const KernelTable* kernels = nullptr;  // the backend that the weights are packed for
  std::shared_ptr<Device> device;        // whose memory holds the weights; null: the host's
  Weights weights;
};

// Errors are those of ReadModelConfig and LoadWeights. The allocator outlives the model; the pool
// is used during the call only.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(const WeightSource& source,
                                                 const WeightsOptions& options,
                                                 LoadProgress progress);
inline absl::StatusOr<std::unique_ptr<Model>> LoadModel(const WeightSource& source,
                                                        const WeightsOptions& options) {
  return LoadModel(source, options, [](uint64_t, uint64_t) { return absl::OkStatus(); });
}

}  // namespace llm
