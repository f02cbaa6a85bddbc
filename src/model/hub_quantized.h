// Low-bit weights of a hub as the blocks of a format that holds the same values.
#pragma once

#include "absl/status/statusor.h"
#include "src/model/hub_present.h"

namespace llm {

// `tensor` is the one that holds the codes ("....qweight"). Its companions are found by name.
// UNIMPLEMENTED for values that the format cannot hold, INVALID_ARGUMENT for shapes that do not fit
// each other; zero points, scales and masks themselves are looked at when they are read.
absl::StatusOr<HubPresented> PresentQuantized(const SafeTensor& tensor, const HubExtras& extras,
                                              const SafetensorsSet& set);

}  // namespace llm
