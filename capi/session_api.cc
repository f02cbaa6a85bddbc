// llm_session_*: hints about when a session comes back.
#include "absl/strings/str_cat.h"
#include "capi/boundary.h"
#include "capi/handles.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status TranslateHint(uint32_t given, SessionHint* hint) {
  switch (given) {
    case LLM_HINT_TOOL_CALL:
      *hint = SessionHint::kToolCall;
      return absl::OkStatus();
    case LLM_HINT_HUMAN:
      *hint = SessionHint::kHuman;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat("hint: ", given, " is no LLM_HINT_*"));
  }
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_session_hint(llm_engine* engine, uint64_t session_id, uint32_t hint) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    llm::SessionHint translated = llm::SessionHint::kNone;
    LLM_RETURN_IF_ERROR(llm::TranslateHint(hint, &translated));
    return engine->engine->HintSession(session_id, translated);
  });
}

extern "C" llm_status llm_session_close(llm_engine* engine, uint64_t session_id) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    return engine->engine->HintSession(session_id, llm::SessionHint::kClosed);
  });
}
