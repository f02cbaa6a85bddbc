// Which parts of a text came out of the chat's data rather than out of the template: there, the
// spelling of a control token must not become one.
#pragma once

#include <cstddef>

#include "src/tokenizer/jinja/value.h"
#include "src/tokenizer/text_span.h"

namespace llm::jinja {

// Adds [begin, end), which may touch the last span but not lie before its end.
void AddSpan(size_t begin, size_t end, TextSpans* spans);

// Adds what `of` marks of its bytes [begin, end), which stand at `offset` in the text of `spans`.
void AddPart(const Text& of, size_t begin, size_t end, size_t offset, TextSpans* spans);

// Whether text made from this value may hold literal parts.
bool MayBeLiteral(const Value& value);
bool MayBeLiteral(const Value& value, const Arguments& arguments);

}  // namespace llm::jinja
