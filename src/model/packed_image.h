// A pack's weights: checked against the layout of this library, then read or mapped as they are.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "src/loader/weight_source.h"
#include "src/model/tensor_list.h"
#include "src/model/weights.h"

namespace llm {

// Whether the image is the one that `list` describes: the same backend, every tensor in its place.
// Errors as WeightsBytes'. REQUIRES: source.packed() != nullptr.
absl::Status CheckImage(const WeightSource& source, const TensorList& list,
                        const KernelTable& kernels);

// What LoadImage allocates beside the weights, where they go to a device.
size_t ImageStagingBytes(int num_threads);

// Sets weights->bytes and its owner, and the times. REQUIRES: CheckImage is OK.
absl::Status LoadImage(const WeightSource& source, const WeightsOptions& options,
                       LoadProgress progress, Weights* weights);

}  // namespace llm
