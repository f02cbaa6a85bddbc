// The model file as the options want its weights.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/engine/loaded_model.h"
#include "src/loader/model_file.h"
#include "src/loader/weight_source.h"

namespace llm {

struct OpenedSource {
  std::unique_ptr<WeightSource> source;
  std::shared_ptr<const std::atomic<int64_t>> encode_ns;  // as of QuantizedFile
};

// Errors are those of QuantizeFile and OpenWeightSource.
absl::StatusOr<OpenedSource> OpenSource(std::unique_ptr<ModelFile> file,
                                        const ModelOptions& options);

}  // namespace llm
