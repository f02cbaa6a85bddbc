// Weights of a checkpoint in E4M3, with scales for all of a tensor, for each row or for blocks, as
// blocks of F8_E4M3.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/loader/safetensors_set.h"
#include "src/model/hub_present.h"

namespace llm {

// Both: NOT_FOUND for missing scales, INVALID_ARGUMENT for a shape that is not that of the weights,
// UNIMPLEMENTED for columns that are no whole blocks; a NaN is an INVALID_ARGUMENT when it is read.
// They name the tensor.

// [outputs, inputs] beside "<stem>weight_scale" or, as DeepSeek calls it, "weight_scale_inv".
absl::StatusOr<HubPresented> PresentF8(const SafeTensor& codes, const std::string& stem,
                                       const HubExtras& extras, const SafetensorsSet& set);
// Of such a weight of heads, each with extras.key_rows and then extras.value_rows rows, the keys,
// transposed: [heads, inputs, key_rows], or the values: [heads, value_rows, inputs].
absl::StatusOr<HubPresented> PresentF8Heads(const SafeTensor& codes, bool keys,
                                            const HubExtras& extras, const SafetensorsSet& set);

}  // namespace llm
