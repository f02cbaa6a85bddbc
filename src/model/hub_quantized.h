// Low-bit weights of a hub as the blocks of a GGUF format that holds the same values.
#pragma once

#include "absl/status/statusor.h"
#include "src/model/hub_present.h"

namespace llm {

// `tensor` is the one that holds the codes ("....qweight"). Its companions are found by name; zero
// points and the order of groups are read and must be the plain ones. UNIMPLEMENTED for values that
// the format cannot hold, INVALID_ARGUMENT for shapes that do not fit each other.
absl::StatusOr<HubPresented> PresentQuantized(const SafeTensor& tensor, const HubExtras& extras,
                                              const SafetensorsSet& set);

}  // namespace llm
