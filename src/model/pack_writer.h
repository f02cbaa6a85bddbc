// Writes a loaded model as a pack (src/loader/pack_format.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "src/loader/weight_source.h"
#include "src/model/model.h"

namespace llm {

// Replaces the file at `path` when all is written; until then, and on any error, it is as before.
// `source` is what `model` was loaded from; FAILED_PRECONDITION: it is itself a pack. Other errors
// are the path's and `progress`'s, which hears of the bytes of weights written.
absl::Status WritePack(const WeightSource& source, const Model& model, const std::string& path,
                       LoadProgress progress);

}  // namespace llm
