// Turns a template's source into its tree.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/ast.h"

namespace llm::jinja {

// INVALID_ARGUMENT with line and reason, also when blocks or expressions nest deeper than
// `max_depth`.
absl::StatusOr<std::unique_ptr<const Template>> ParseTemplate(absl::string_view source,
                                                              uint32_t max_depth);

// Names that every template shares; the parser interns them first.
inline constexpr NameId kLoopName = 0;
inline constexpr NameId kCallerName = 1;
inline constexpr NameId kVarargsName = 2;
inline constexpr NameId kKwargsName = 3;

}  // namespace llm::jinja
