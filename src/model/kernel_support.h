// Whether a backend has all that a model needs: a device's may not have every op and format yet.
#pragma once

#include "absl/status/status.h"
#include "kernels/kernel_table.h"
#include "src/model/model_config.h"
#include "src/model/tensor_list.h"

namespace llm {

// UNIMPLEMENTED, naming the op, or the tensor and its format.
absl::Status CheckKernels(const TensorList& list, const ModelConfig& config,
                          const KernelTable& kernels);

}  // namespace llm
