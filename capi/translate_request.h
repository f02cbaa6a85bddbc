// llm_request to RequestSpec.
#pragma once

#include "absl/status/status.h"
#include "inlay/llm.h"
#include "src/engine/request_spec.h"

namespace llm {

// Texts and ids of the prompt are borrowed from the caller; the rest is copied.
absl::Status TranslateRequest(const llm_request* given, RequestSpec* spec);

}  // namespace llm
