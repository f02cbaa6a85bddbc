// Tensors of a file in the form that a backend wants, read and packed in pieces.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/loader/weight_source.h"
#include "src/model/tensor_list.h"
#include "src/model/weights.h"

namespace llm {

// What PackTensors allocates beside the weights. The errors are those of packed_bytes.
absl::StatusOr<size_t> PackingBytes(const TensorList& list, const KernelTable& kernels,
                                    bool to_device, int num_threads);

// Fills weights->storage, options.device's memory or the host's, and counts the time that it takes.
absl::Status PackTensors(const WeightSource& source, const TensorList& list,
                         const WeightsOptions& options, LoadProgress progress, Weights* weights);

}  // namespace llm
