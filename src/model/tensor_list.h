// Which tensors a model of a given config has, their shapes, and where in Weights they go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/pack.h"
#include "src/loader/weight_source.h"
#include "src/model/model_config.h"
#include "src/model/weights.h"

namespace llm {

// Exactly one of `matrix` and `vector` is set: packed for a backend, or decoded to f32.
struct TensorSlot {
  const TensorInfo* tensor = nullptr;
  PackedWeight* matrix = nullptr;
  const float** vector = nullptr;
  size_t offset = 0;      // into Weights::bytes, a multiple of 64
  size_t size_bytes = 0;  // there; zeros follow up to the next multiple of 64
};

// Rows of a matrix that the model uses as a matrix of their own.
struct RowSlice {
  const PackedWeight* whole = nullptr;
  PackedWeight* part = nullptr;
  size_t offset = 0;  // into the whole's packed bytes
};

struct TensorList {
  std::vector<TensorSlot> slots;
  std::vector<RowSlice> slices;
  size_t total_bytes = 0;  // of Weights::bytes
};

// Sizes weights->layers and lists every tensor of the model; the errors are WeightsBytes'.
// `weights` outlives the list.
absl::StatusOr<TensorList> ListTensors(const WeightSource& source, const ModelConfig& config,
                                       PackedBytesFn packed_bytes, Weights* weights);

}  // namespace llm
