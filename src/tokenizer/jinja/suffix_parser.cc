// What follows a primary: .name, [key], (arguments), |filter and `is` test.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/expression_parser.h"

namespace llm::jinja {
absl::StatusOr<ExpressionPtr> ExpressionParser::ParseSuffixes(ExpressionPtr base,
                                                              bool with_filters) {
  auto node = std::make_unique<PostfixExpression>();
  bool had_filter = false;
  while (true) {
    LLM_ASSIGN_OR_RETURN(const bool added, AddSuffix(with_filters, &had_filter, node.get()));
    if (!added) break;
  }
  if (node->suffixes.empty()) return base;
  node->base = node->Adopt(std::move(base));
  LLM_RETURN_IF_ERROR(tokens_.CheckDepth(node->depth));
  return node;
}

absl::StatusOr<bool> ExpressionParser::AddSuffix(bool with_filters, bool* had_filter,
                                                 PostfixExpression* node) {
  if (tokens_.AtOperator("(")) {
    node->suffixes.emplace_back().kind = SuffixKind::kCall;
    LLM_RETURN_IF_ERROR(ParseArguments(node, &node->suffixes.back()));
    return true;
  }
  if (!*had_filter && tokens_.TakeOperator(".")) {
    LLM_RETURN_IF_ERROR(ParseAttribute(node));
    return true;
  }
  if (!*had_filter && tokens_.TakeOperator("[")) {
    LLM_RETURN_IF_ERROR(ParseSubscript(node));
    return true;
  }
  if (!with_filters) return false;
  const bool filter = tokens_.TakeOperator("|");
  if (!filter && !tokens_.TakeName("is")) return false;
  *had_filter = true;
  LLM_RETURN_IF_ERROR(filter ? ParseFilter(node) : ParseTest(node));
  return true;
}

absl::Status ExpressionParser::ParseAttribute(PostfixExpression* node) {
  Suffix& suffix = node->suffixes.emplace_back();
  if (tokens_.Peek().kind == TokenKind::kName) {
    suffix.name = std::string(tokens_.Next().text);
    return absl::OkStatus();
  }
  if (tokens_.Peek().kind != TokenKind::kInteger) return tokens_.Unexpected("a name");
  suffix.kind = SuffixKind::kItem;
  LLM_ASSIGN_OR_RETURN(suffix.bounds[0], ParseInteger());
  return absl::OkStatus();
}

absl::Status ExpressionParser::ParseSubscript(PostfixExpression* node) {
  Suffix suffix;
  suffix.kind = SuffixKind::kItem;
  for (size_t part = 0; part < 3; ++part) {
    if (!tokens_.AtOperator(":") && !tokens_.AtOperator("]")) {
      LLM_ASSIGN_OR_RETURN(ExpressionPtr bound, Parse());
      suffix.bounds[part] = node->Adopt(std::move(bound));
    }
    if (!tokens_.TakeOperator(":")) break;
    suffix.kind = SuffixKind::kSlice;
  }
  if (suffix.kind == SuffixKind::kItem && suffix.bounds[0] == nullptr) {
    return tokens_.Unexpected("a subscript");
  }
  node->suffixes.push_back(std::move(suffix));
  return tokens_.ExpectOperator("]");
}

absl::StatusOr<std::string> ExpressionParser::ParseDottedName(absl::string_view what) {
  if (tokens_.Peek().kind != TokenKind::kName) return tokens_.Unexpected(what);
  std::string name(tokens_.Next().text);
  while (tokens_.TakeOperator(".")) {
    if (tokens_.Peek().kind != TokenKind::kName) return tokens_.Unexpected(what);
    absl::StrAppend(&name, ".", tokens_.Next().text);
  }
  return name;
}

absl::Status ExpressionParser::ParseFilter(PostfixExpression* node) {
  Suffix suffix;
  suffix.kind = SuffixKind::kFilter;
  LLM_ASSIGN_OR_RETURN(suffix.name, ParseDottedName("the name of a filter"));
  if (tokens_.AtOperator("(")) LLM_RETURN_IF_ERROR(ParseArguments(node, &suffix));
  node->suffixes.push_back(std::move(suffix));
  return absl::OkStatus();
}

absl::Status ExpressionParser::ParseTest(PostfixExpression* node) {
  Suffix suffix;
  suffix.kind = SuffixKind::kTest;
  suffix.negated = tokens_.TakeName("not");
  LLM_ASSIGN_OR_RETURN(suffix.name, ParseDottedName("the name of a test"));
  const Token& next = tokens_.Peek();
  const bool name_argument = next.kind == TokenKind::kName && next.text != "else" &&
                             next.text != "or" && next.text != "and";
  const bool literal = next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
                       next.kind == TokenKind::kFloat || tokens_.AtOperator("[") ||
                       tokens_.AtOperator("{");
  if (tokens_.AtOperator("(")) {
    LLM_RETURN_IF_ERROR(ParseArguments(node, &suffix));
  } else if (name_argument && next.text == "is") {
    return tokens_.Error("tests cannot be chained with is");
  } else if (literal ||
             (name_argument && next.text != "if" && next.text != "in" && next.text != "not")) {
    // `is divisibleby 3`: one argument without parentheses.
    LLM_ASSIGN_OR_RETURN(ExpressionPtr primary, ParsePrimary());
    LLM_ASSIGN_OR_RETURN(ExpressionPtr argument, ParseSuffixes(std::move(primary), false));
    suffix.arguments.push_back({ArgumentKind::kPositional, "", node->Adopt(std::move(argument))});
  }
  node->suffixes.push_back(std::move(suffix));
  return absl::OkStatus();
}

absl::Status ExpressionParser::ParseArguments(PostfixExpression* node, Suffix* suffix) {
  LLM_RETURN_IF_ERROR(tokens_.ExpectOperator("("));
  while (!tokens_.TakeOperator(")")) {
    Argument argument;
    if (tokens_.TakeOperator("*")) {
      argument.kind = ArgumentKind::kUnpackList;
    } else if (tokens_.TakeOperator("**")) {
      argument.kind = ArgumentKind::kUnpackDict;
    } else if (tokens_.Peek().kind == TokenKind::kName && tokens_.Peek(1).text == "=" &&
               tokens_.Peek(1).kind == TokenKind::kOperator) {
      argument.kind = ArgumentKind::kNamed;
      argument.name = std::string(tokens_.Next().text);
      tokens_.Next();
    }
    LLM_ASSIGN_OR_RETURN(ExpressionPtr value, Parse());
    const bool late = argument.kind == ArgumentKind::kPositional && !suffix->arguments.empty() &&
                      suffix->arguments.back().kind != ArgumentKind::kPositional;
    if (late) return tokens_.Error("a positional argument after a named one");
    argument.value = node->Adopt(std::move(value));
    suffix->arguments.push_back(std::move(argument));
    if (!tokens_.AtOperator(")")) LLM_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseFilters() {
  auto node = std::make_unique<PostfixExpression>();
  do {
    LLM_RETURN_IF_ERROR(ParseFilter(node.get()));
  } while (tokens_.TakeOperator("|"));
  LLM_RETURN_IF_ERROR(tokens_.CheckDepth(node->depth));
  return node;
}

}  // namespace llm::jinja
