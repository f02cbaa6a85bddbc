// One tensor of a hub in one of the forms that GGUF wants.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/quant/weight_format.h"
#include "src/loader/composed_file.h"
#include "src/loader/safetensors_set.h"
#include "src/model/hub_model.h"

namespace llm {

// UNIMPLEMENTED for a dtype that has none.
absl::StatusOr<WeightFormat> FormatOfHub(SafeType type);

struct HubPresented {
  WeightFormat format = WeightFormat::kF32;
  std::vector<int64_t> shape;
  FilePart part;
};

// INVALID_ARGUMENT when the tensor's shape, or its scales, are not what the form says. REQUIRES:
// not kExpert or kUnused.
absl::StatusOr<HubPresented> PresentTensor(const SafeTensor& tensor, HubForm form,
                                           const HubExtras& extras, const SafetensorsSet& set);

}  // namespace llm
