// Cuts a template into text and the tokens inside its tags, and applies the rules for white space
// around tags.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llm::jinja {

enum class TokenKind {
  kData,           // text outside of tags
  kExpression,     // {{
  kExpressionEnd,  // }}
  kBlock,          // {%
  kBlockEnd,       // %}
  kName,
  kString,  // with its quotes, escapes not yet resolved
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;  // points into the source
  int line = 1;
};

// Line ends as \n, and without the last one: what Jinja lexes.
std::string NormalizeLineEnds(absl::string_view source);

// The last token is kEnd. INVALID_ARGUMENT with the line. REQUIRES: `source` is normalized and
// outlives the tokens.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source);

// "chat template line 3: ..."
absl::Status SyntaxError(int line, absl::string_view what);

}  // namespace llm::jinja
