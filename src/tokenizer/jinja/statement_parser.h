// Parses text, tags and blocks.
#pragma once

#include <initializer_list>
#include <memory>

#include "absl/status/statusor.h"
#include "src/tokenizer/jinja/expression_parser.h"

namespace llm::jinja {

class StatementParser {
 public:
  explicit StatementParser(TokenStream& tokens) : tokens_(tokens), expressions_(tokens) {}

  // Up to a tag whose name is in `ends`; stands on that name afterwards. Without ends: up to the
  // end of the template.
  absl::StatusOr<Body> ParseBody(std::initializer_list<absl::string_view> ends);

 private:
  using StatementPtr = std::unique_ptr<Statement>;

  absl::StatusOr<StatementPtr> ParseStatement();
  absl::StatusOr<StatementPtr> ParseKnownStatement(absl::string_view tag, int line);
  absl::StatusOr<StatementPtr> ParsePrint();
  absl::StatusOr<StatementPtr> ParseIf(int line);
  absl::StatusOr<StatementPtr> ParseFor(int line);
  absl::StatusOr<StatementPtr> ParseSet(int line);
  absl::StatusOr<StatementPtr> ParseSetBlock(Target target, int line);
  absl::StatusOr<StatementPtr> ParseMacro(int line);
  absl::StatusOr<StatementPtr> ParseCallBlock(int line);
  absl::StatusOr<StatementPtr> ParseFilterBlock(int line);
  absl::StatusOr<StatementPtr> ParseWith(int line);
  absl::StatusOr<StatementPtr> ParseScope(absl::string_view end, int line);
  absl::StatusOr<StatementPtr> ParseJump(StatementKind kind, int line);

  // The body up to `end`, and the end tag itself.
  absl::StatusOr<Body> ParseBodyAndEnd(absl::string_view end);
  absl::StatusOr<Target> ParseTarget(bool with_member);
  absl::StatusOr<Target> ParseSingleTarget(bool with_member);
  absl::Status ParseParameters(MacroStatement* macro);
  absl::Status ParseMacroBody(absl::string_view end, MacroStatement* macro);

  TokenStream& tokens_;
  ExpressionParser expressions_;
  int open_loops_ = 0;  // around the current statement, within the same macro
};

}  // namespace llm::jinja
