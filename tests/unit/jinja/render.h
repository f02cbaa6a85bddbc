// Renders a template with the variables that the language tests share.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/chat_template.h"

namespace llm {

// s "Hello", n null, i 7, f 2.5, l [3, 1, 2], d {b: 1, a: 2}, t true, u (non-ASCII text), people
// (three dicts).
extern const char kTestContext[];

absl::StatusOr<std::string> Render(absl::string_view source, absl::string_view context,
                                   const ChatTemplateLimits& limits = {});

// The text with kTestContext at 2025-07-26 09:05:03 UTC, or the status' message.
std::string Rendered(absl::string_view source);

// The status' code with kTestContext, whether parsing or rendering gives it.
absl::StatusCode Code(absl::string_view source, const ChatTemplateLimits& limits = {});

}  // namespace llm
