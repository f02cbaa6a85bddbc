// The part of llm_model_options that says what weights become.
#pragma once

#include "absl/status/status.h"
#include "inlay/llm.h"
#include "src/engine/loaded_model.h"

namespace llm {

// INVALID_ARGUMENT, naming the field, for what is unknown or does not go together.
absl::Status TranslateWeights(const llm_model_options& c, ModelOptions* options);

}  // namespace llm
