// JSON in and out of template values.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/runtime.h"

namespace llm::jinja {

// INVALID_ARGUMENT for bad JSON and for integers beyond 64 bits; RESOURCE_EXHAUSTED when it nests
// too deep.
absl::StatusOr<Value> ParseJson(Runtime& runtime, absl::string_view text);

struct JsonStyle {
  bool pretty = false;  // one item per line, after `indent`
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};

// Python's json.dumps.
absl::StatusOr<std::string> DumpJson(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace llm::jinja
