// Finds filters, tests, functions and methods by name. Undefined where a template that asks for one
// must get an error.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/tokenizer/jinja/value.h"

namespace llm::jinja {

using BuiltinTest = absl::StatusOr<bool> (*)(Runtime& runtime, const Value& self,
                                             const Arguments& arguments);

struct NamedBuiltin {
  absl::string_view name;
  Builtin builtin;
};

// nullptr when there is none of that name.
Builtin FindFilter(absl::string_view name);
BuiltinTest FindTest(absl::string_view name);
Builtin FindGlobal(absl::string_view name);
Builtin FindTextMethod(absl::string_view name);
Builtin FindDictMethod(absl::string_view name);
Builtin FindSequenceMethod(absl::string_view name);

Builtin FindIn(absl::Span<const NamedBuiltin> table, absl::string_view name);

// The tables that FindFilter searches, by what they work on.
absl::Span<const NamedBuiltin> TextFilters();
absl::Span<const NamedBuiltin> NumberFilters();
absl::Span<const NamedBuiltin> SequenceFilters();
absl::Span<const NamedBuiltin> SelectionFilters();

}  // namespace llm::jinja
