// Parses expressions; a recursive descent whose depth the token stream bounds.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "src/tokenizer/jinja/ast.h"
#include "src/tokenizer/jinja/token_stream.h"

namespace llm::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // One expression; with `conditional`, also `a if b else c`.
  absl::StatusOr<ExpressionPtr> Parse(bool conditional = true);
  // What a tag takes: an expression, or several with commas, which make a tuple.
  absl::StatusOr<ExpressionPtr> ParseTuple(bool conditional = true);
  // name(arguments)|name...: the filters of a block; the result has no base.
  absl::StatusOr<ExpressionPtr> ParseFilters();
  // A primary with its subscripts, calls, filters and tests.
  absl::StatusOr<ExpressionPtr> ParseUnary(bool with_filters = true);

 private:
  absl::StatusOr<ExpressionPtr> ParseOperators(int min_level);
  absl::StatusOr<ExpressionPtr> ParseNot();
  absl::StatusOr<ExpressionPtr> ParseOperand(int level);
  absl::Status AddOperator(int level, ExpressionPtr* left);
  absl::Status AddLogical(bool all, ExpressionPtr* left);
  absl::Status AddCompare(ExpressionPtr* left);
  absl::Status AddArithmetic(int level, ExpressionPtr* left);
  absl::Status AddConcat(ExpressionPtr* left);
  int NextLevel() const;

  absl::StatusOr<ExpressionPtr> ParsePrimary();
  absl::StatusOr<ExpressionPtr> ParseName();
  absl::StatusOr<ExpressionPtr> ParseString();
  absl::StatusOr<ExpressionPtr> ParseInteger();
  absl::StatusOr<ExpressionPtr> ParseFloat();
  absl::StatusOr<ExpressionPtr> ParseParentheses();
  absl::StatusOr<ExpressionPtr> ParseList();
  absl::StatusOr<ExpressionPtr> ParseDict();

  absl::StatusOr<ExpressionPtr> ParseSuffixes(ExpressionPtr base, bool with_filters);
  // False when no suffix follows.
  absl::StatusOr<bool> AddSuffix(bool with_filters, bool* had_filter, PostfixExpression* node);
  absl::Status ParseAttribute(PostfixExpression* node);
  absl::Status ParseSubscript(PostfixExpression* node);
  absl::Status ParseFilter(PostfixExpression* node);
  absl::Status ParseTest(PostfixExpression* node);
  absl::Status ParseArguments(PostfixExpression* node, Suffix* suffix);
  absl::StatusOr<std::string> ParseDottedName(absl::string_view what);

  TokenStream& tokens_;
};

// The text of a string token, escapes resolved. INVALID_ARGUMENT for a malformed escape.
absl::StatusOr<std::string> UnescapeString(const Token& token);

}  // namespace llm::jinja
