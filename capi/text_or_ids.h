// What the calls on a text share: its fields, and that a refusal is counted.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/versioned_struct.h"
#include "src/base/status_macros.h"

namespace llm {

// text or ids, parse_special and priority, of an llm_score_request or llm_embed_request.
template <typename Struct>
absl::Status ReadTextOrIds(absl::string_view call, const Struct& c, TextSpec* spec) {
  LLM_RETURN_IF_ERROR(CheckArray("text", c.text.data, c.text.size));
  LLM_RETURN_IF_ERROR(CheckArray("ids", c.ids, c.num_ids));
  LLM_RETURN_IF_ERROR(CheckLeastSize(absl::StrCat("llm_", call, "_request"), c.struct_size,
                                     offsetof(Struct, num_ids) + sizeof(c.num_ids), "the text"));
  if ((c.text.size != 0) == (c.num_ids != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": exactly one of text and ids must be set"));
  }
  spec->prompt_kind = c.num_ids != 0 ? PromptKind::kIds : PromptKind::kText;
  spec->text = FromC(c.text);
  spec->ids = absl::MakeConstSpan(c.ids, c.num_ids);
  spec->priority = c.priority;
  return ReadSwitch("parse_special", c.parse_special, false, &spec->parse_special);
}

// Passes the status of a struct's translation on; a refusal is in the engine's counters.
inline absl::Status CountIfRejected(llm_engine* engine, const absl::Status& translated) {
  if (!translated.ok()) engine->engine->CountRejected(translated.code());
  return translated;
}

}  // namespace llm
