// One tensor of a hub in one of the forms that GGUF wants.
#pragma once

#include <cstdint>
#include <memory>
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
  // Where columns were put into another order: which input comes at each place, f32 [cols].
  std::shared_ptr<const DerivedBytes> order = nullptr;
};

// A tensor whose bytes are computed. UNIMPLEMENTED when its last dimension is no whole blocks.
absl::StatusOr<HubPresented> PresentDerived(WeightFormat format, std::vector<int64_t> shape,
                                            std::shared_ptr<const DerivedBytes> derived);

// INVALID_ARGUMENT when the tensor's shape, or its scales, are not what the form says. REQUIRES:
// not kExpert or kUnused.
absl::StatusOr<HubPresented> PresentTensor(const SafeTensor& tensor, HubForm form,
                                           const HubExtras& extras, const SafetensorsSet& set);

}  // namespace llm
