// The tensors of a hub's directory as the GGUF tensors that they are to this library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/quant/weight_format.h"
#include "src/loader/composed_file.h"
#include "src/loader/safetensors_set.h"
#include "src/model/hub_model.h"

namespace llm {

struct HubTensorParts {
  std::string name;      // GGUF's
  std::string hub_name;  // of its first part
  WeightFormat format = WeightFormat::kF32;
  std::vector<int64_t> shape;   // row-major
  std::vector<FilePart> parts;  // one after the other, from 0 on
  uint64_t size_bytes = 0;
};

// UNIMPLEMENTED, naming the tensor, for one that the description does not know or whose dtype has
// no format; INVALID_ARGUMENT for experts that are missing or differ in shape, and for a bias or a
// head that the config does not announce. Parts refer to the set's files.
absl::StatusOr<std::vector<HubTensorParts>> MapHubTensors(const HubModel& model,
                                                          const HubExtras& extras,
                                                          const SafetensorsSet& set);

}  // namespace llm
