// Low-bit floats of a checkpoint, and its weights without their zeros, as blocks of MXFP8,
// NVFP4_F32 and BF16_24.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/loader/safetensors_set.h"
#include "src/model/hub_present.h"

namespace llm {

// All: NOT_FOUND for a missing companion ("<stem>weight_scale"), INVALID_ARGUMENT for shapes that
// do not fit each other, UNIMPLEMENTED for columns that are no whole blocks; what the format has no
// value for, NaN, is an INVALID_ARGUMENT when it is read. They name the tensor.

// E4M3 [outputs, inputs], an exponent for 32 inputs.
absl::StatusOr<HubPresented> PresentMxfp8(const SafeTensor& codes, const std::string& stem,
                                          const SafetensorsSet& set);
// E2M1 in pairs [outputs, inputs / 2], an E4M3 for 16 inputs, what all are divided by.
absl::StatusOr<HubPresented> PresentNvfp4(const SafeTensor& codes, const std::string& stem,
                                          const SafetensorsSet& set);
// BF16 [outputs, inputs / 2], which two of each four inputs they are.
absl::StatusOr<HubPresented> PresentSparse24(const SafeTensor& kept, const std::string& stem,
                                             const SafetensorsSet& set);

}  // namespace llm
