// Which kernels a model is opened for, and the device that its weights go to.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "src/engine/loaded_model.h"
#include "src/loader/weight_source.h"
#include "src/model/model_config.h"
#include "src/tensor/device.h"

namespace llm {

struct Backend {
  const KernelTable* kernels = nullptr;
  std::shared_ptr<Device> device;  // null: host memory
};

// As options.device and options.kernels say. By default a GPU that runs this model, else the CPU,
// with a warning where a GPU is there and lacks something; a pack goes where it was made for.
// UNAVAILABLE: the GPU that was asked for; INVALID_ARGUMENT: kernels of another device, or unknown;
// a device_index beyond the GPUs that are there.
absl::StatusOr<Backend> ChooseBackend(const ModelOptions& options, const WeightSource& source,
                                      const ModelConfig& config);

// RESOURCE_EXHAUSTED, with the numbers, where the device has not so many bytes left for `what`.
absl::Status CheckDeviceRoom(const Device& device, uint64_t bytes, absl::string_view what);

}  // namespace llm
