// llm_engine_options to OpenOptions.
#pragma once

#include "absl/status/status.h"
#include "inlay/llm.h"
#include "src/engine/open_engine.h"

namespace llm {

// `given` may be NULL: all defaults.
absl::Status TranslateEngineOptions(const llm_engine_options* given, OpenOptions* options);

}  // namespace llm
