// Values as text: Python's str() and repr().
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/runtime.h"

namespace llm::jinja {

// Appends str(value). The bytes appended are charged as value bytes, since a small value may print
// long.
absl::Status AppendText(Runtime& runtime, const Value& value, std::string* out);
absl::Status AppendRepr(Runtime& runtime, const Value& value, std::string* out);
absl::StatusOr<std::string> ToText(Runtime& runtime, const Value& value);

// Python's repr of a float: the shortest digits that read back the same.
std::string FloatRepr(double number);

// `text` with & < > ' " replaced for HTML.
std::string EscapeHtml(absl::string_view text);

}  // namespace llm::jinja
