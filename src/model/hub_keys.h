// A hub's config.json as GGUF metadata.
#pragma once

#include "absl/status/statusor.h"
#include "src/loader/gguf_writer.h"
#include "src/loader/json_document.h"
#include "src/model/hub_model.h"
#include "src/model/hub_names.h"

namespace llm {

struct HubHeader {
  const HubModel* model = nullptr;
  HubExtras extras;
  HubNames names;
};

// Writes the keys of the architecture's namespace and general.architecture. UNIMPLEMENTED for a
// family, a key or a value that no description knows, NOT_FOUND for a missing key, INVALID_ARGUMENT
// for one of another type: all by name. Whether numbers make sense is for ReadModelConfig to say.
absl::StatusOr<HubHeader> WriteHubKeys(const JsonDocument& config, GgufWriter* writer);

}  // namespace llm
