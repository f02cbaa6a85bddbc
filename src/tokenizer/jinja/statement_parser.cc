// One function per tag.
#include "src/tokenizer/jinja/statement_parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/parser.h"

namespace llm::jinja {

absl::StatusOr<Body> StatementParser::ParseBody(std::initializer_list<absl::string_view> ends) {
  Body body;
  while (true) {
    const Token& token = tokens_.Peek();
    if (token.kind == TokenKind::kEnd) {
      if (ends.size() == 0) return body;
      return tokens_.Error(absl::StrCat("{% ", *(ends.end() - 1), " %} is missing"));
    }
    if (token.kind == TokenKind::kData) {
      body.push_back(std::make_unique<TextStatement>(std::string(token.text), token.line));
      tokens_.Next();
      continue;
    }
    if (token.kind == TokenKind::kExpression) {
      LLM_ASSIGN_OR_RETURN(StatementPtr print, ParsePrint());
      body.push_back(std::move(print));
      continue;
    }
    tokens_.Next();  // {%
    const absl::string_view tag = tokens_.Peek().text;
    if (std::find(ends.begin(), ends.end(), tag) != ends.end()) return body;
    LLM_ASSIGN_OR_RETURN(StatementPtr statement, ParseStatement());
    body.push_back(std::move(statement));
  }
}

absl::StatusOr<Body> StatementParser::ParseBodyAndEnd(absl::string_view end) {
  LLM_ASSIGN_OR_RETURN(Body body, ParseBody({end}));
  tokens_.Next();
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  return body;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseStatement() {
  TokenStream::Depth depth(tokens_);
  LLM_RETURN_IF_ERROR(depth.status());
  if (tokens_.Peek().kind != TokenKind::kName) return tokens_.Unexpected("the name of a tag");
  const Token tag = tokens_.Next();
  return ParseKnownStatement(tag.text, tag.line);
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseKnownStatement(
    absl::string_view tag, int line) {
  if (tag == "if") return ParseIf(line);
  if (tag == "for") return ParseFor(line);
  if (tag == "set") return ParseSet(line);
  if (tag == "macro") return ParseMacro(line);
  if (tag == "call") return ParseCallBlock(line);
  if (tag == "filter") return ParseFilterBlock(line);
  if (tag == "with") return ParseWith(line);
  if (tag == "generation") return ParseScope("endgeneration", line);
  if (tag == "break") return ParseJump(StatementKind::kBreak, line);
  if (tag == "continue") return ParseJump(StatementKind::kContinue, line);
  return SyntaxError(line, absl::StrCat("unknown tag '", tag.substr(0, 40), "'"));
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParsePrint() {
  const int line = tokens_.Next().line;
  LLM_ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.ParseTuple());
  if (!tokens_.TakeKind(TokenKind::kExpressionEnd)) return tokens_.Unexpected("'}}'");
  return std::make_unique<PrintStatement>(std::move(value), line);
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseIf(int line) {
  auto node = std::make_unique<IfStatement>(line);
  do {
    LLM_ASSIGN_OR_RETURN(ExpressionPtr condition, expressions_.ParseTuple(false));
    LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
    LLM_ASSIGN_OR_RETURN(Body body, ParseBody({"elif", "else", "endif"}));
    node->branches.emplace_back(std::move(condition), std::move(body));
  } while (tokens_.TakeName("elif"));
  if (tokens_.TakeName("else")) {
    LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
    LLM_ASSIGN_OR_RETURN(node->otherwise, ParseBody({"endif"}));
  }
  tokens_.Next();
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  return node;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseFor(int line) {
  auto node = std::make_unique<ForStatement>(line);
  LLM_ASSIGN_OR_RETURN(node->target, ParseTarget(false));
  if (!tokens_.TakeName("in")) return tokens_.Unexpected("'in'");
  LLM_ASSIGN_OR_RETURN(node->items, expressions_.ParseTuple(false));
  if (tokens_.TakeName("if")) {
    LLM_ASSIGN_OR_RETURN(node->filter, expressions_.Parse());
  }
  node->recursive = tokens_.TakeName("recursive");
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  ++open_loops_;
  LLM_ASSIGN_OR_RETURN(node->body, ParseBody({"else", "endfor"}));
  --open_loops_;
  if (tokens_.TakeName("else")) {
    LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
    LLM_ASSIGN_OR_RETURN(node->otherwise, ParseBody({"endfor"}));
  }
  tokens_.Next();
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  return node;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseSet(int line) {
  LLM_ASSIGN_OR_RETURN(Target target, ParseTarget(true));
  if (!tokens_.TakeOperator("=")) return ParseSetBlock(std::move(target), line);
  auto node = std::make_unique<SetStatement>(line);
  node->target = std::move(target);
  LLM_ASSIGN_OR_RETURN(node->value, expressions_.ParseTuple());
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  return node;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseSetBlock(Target target,
                                                                             int line) {
  auto node = std::make_unique<SetBlockStatement>(line);
  node->target = std::move(target);
  if (tokens_.TakeOperator("|")) {
    LLM_ASSIGN_OR_RETURN(node->filter, expressions_.ParseFilters());
  }
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  LLM_ASSIGN_OR_RETURN(node->body, ParseBodyAndEnd("endset"));
  return node;
}

absl::StatusOr<Target> StatementParser::ParseTarget(bool with_member) {
  TokenStream::Depth depth(tokens_);
  LLM_RETURN_IF_ERROR(depth.status());
  LLM_ASSIGN_OR_RETURN(Target first, ParseSingleTarget(with_member));
  if (!tokens_.AtOperator(",")) return first;
  Target tuple;
  tuple.is_tuple = true;
  tuple.items.push_back(std::move(first));
  while (tokens_.TakeOperator(",")) {
    if (tokens_.AtName("in") || tokens_.AtOperator("=") || tokens_.AtOperator(")")) break;
    LLM_ASSIGN_OR_RETURN(Target item, ParseSingleTarget(with_member));
    tuple.items.push_back(std::move(item));
  }
  return tuple;
}

absl::StatusOr<Target> StatementParser::ParseSingleTarget(bool with_member) {
  if (tokens_.TakeOperator("(")) {
    LLM_ASSIGN_OR_RETURN(Target inner, ParseTarget(with_member));
    LLM_RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
    return inner;
  }
  if (tokens_.Peek().kind != TokenKind::kName) return tokens_.Unexpected("a name to assign to");
  const absl::string_view name = tokens_.Next().text;
  constexpr absl::string_view kReserved[] = {"true", "false", "none", "True", "False", "None"};
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) {
    return tokens_.Error(absl::StrCat("cannot assign to ", name));
  }
  Target target;
  target.name = tokens_.Intern(name);
  if (with_member && tokens_.TakeOperator(".")) {
    if (tokens_.Peek().kind != TokenKind::kName) return tokens_.Unexpected("a member's name");
    target.member = std::string(tokens_.Next().text);
  }
  return target;
}

absl::Status StatementParser::ParseParameters(MacroStatement* macro) {
  LLM_RETURN_IF_ERROR(tokens_.ExpectOperator("("));
  while (!tokens_.TakeOperator(")")) {
    if (tokens_.Peek().kind != TokenKind::kName) return tokens_.Unexpected("a parameter's name");
    MacroParameter parameter;
    parameter.name = std::string(tokens_.Next().text);
    parameter.id = tokens_.Intern(parameter.name);
    if (tokens_.TakeOperator("=")) {
      LLM_ASSIGN_OR_RETURN(parameter.fallback, expressions_.Parse());
    } else if (!macro->parameters.empty() && macro->parameters.back().fallback != nullptr) {
      return tokens_.Error("a parameter without default after one with");
    }
    macro->parameters.push_back(std::move(parameter));
    if (!tokens_.AtOperator(")")) LLM_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
  }
  return absl::OkStatus();
}

absl::Status StatementParser::ParseMacroBody(absl::string_view end, MacroStatement* macro) {
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  const TokenStream::MacroUses outer = tokens_.uses;
  const int outer_loops = open_loops_;
  tokens_.uses = {};
  open_loops_ = 0;  // break cannot leave a macro
  LLM_ASSIGN_OR_RETURN(macro->body, ParseBodyAndEnd(end));
  macro->uses_caller = tokens_.uses.caller;
  macro->uses_varargs = tokens_.uses.varargs;
  macro->uses_kwargs = tokens_.uses.kwargs;
  open_loops_ = outer_loops;
  tokens_.uses = {outer.caller || macro->uses_caller, outer.varargs || macro->uses_varargs,
                  outer.kwargs || macro->uses_kwargs};
  return absl::OkStatus();
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseMacro(int line) {
  auto node = std::make_unique<MacroStatement>(line);
  if (tokens_.Peek().kind != TokenKind::kName) return tokens_.Unexpected("the macro's name");
  node->name = std::string(tokens_.Next().text);
  node->id = tokens_.Intern(node->name);
  LLM_RETURN_IF_ERROR(ParseParameters(node.get()));
  LLM_RETURN_IF_ERROR(ParseMacroBody("endmacro", node.get()));
  return node;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseCallBlock(int line) {
  auto node = std::make_unique<CallBlockStatement>(line);
  node->caller = std::make_unique<MacroStatement>(line);
  node->caller->name = "caller";
  if (tokens_.AtOperator("(")) LLM_RETURN_IF_ERROR(ParseParameters(node->caller.get()));
  LLM_ASSIGN_OR_RETURN(node->call, expressions_.Parse());
  const bool is_call =
      node->call->kind == ExpressionKind::kPostfix &&
      static_cast<const PostfixExpression&>(*node->call).suffixes.back().kind == SuffixKind::kCall;
  if (!is_call) return SyntaxError(line, "a call block needs a call");
  LLM_RETURN_IF_ERROR(ParseMacroBody("endcall", node->caller.get()));
  return node;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseFilterBlock(int line) {
  auto node = std::make_unique<FilterBlockStatement>(line);
  LLM_ASSIGN_OR_RETURN(node->filter, expressions_.ParseFilters());
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  LLM_ASSIGN_OR_RETURN(node->body, ParseBodyAndEnd("endfilter"));
  return node;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseWith(int line) {
  auto node = std::make_unique<ScopeStatement>(line);
  while (tokens_.Peek().kind != TokenKind::kBlockEnd) {
    LLM_ASSIGN_OR_RETURN(Target target, ParseSingleTarget(false));
    LLM_RETURN_IF_ERROR(tokens_.ExpectOperator("="));
    LLM_ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.Parse());
    node->assignments.emplace_back(std::move(target), std::move(value));
    if (!tokens_.TakeOperator(",")) break;
  }
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  LLM_ASSIGN_OR_RETURN(node->body, ParseBodyAndEnd("endwith"));
  return node;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseScope(absl::string_view end,
                                                                          int line) {
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  auto node = std::make_unique<ScopeStatement>(line);
  LLM_ASSIGN_OR_RETURN(node->body, ParseBodyAndEnd(end));
  return node;
}

absl::StatusOr<StatementParser::StatementPtr> StatementParser::ParseJump(StatementKind kind,
                                                                         int line) {
  if (open_loops_ == 0) return SyntaxError(line, "break or continue outside of a loop");
  LLM_RETURN_IF_ERROR(tokens_.ExpectBlockEnd());
  return std::make_unique<JumpStatement>(kind, line);
}

absl::StatusOr<std::unique_ptr<const Template>> ParseTemplate(absl::string_view source,
                                                              uint32_t max_depth) {
  const std::string normalized = NormalizeLineEnds(source);
  LLM_ASSIGN_OR_RETURN(std::vector<Token> token_list, Tokenize(normalized));
  TokenStream tokens(std::move(token_list), max_depth);
  for (const absl::string_view name : {"loop", "caller", "varargs", "kwargs"}) tokens.Intern(name);
  auto parsed = std::make_unique<Template>();
  LLM_ASSIGN_OR_RETURN(parsed->body, StatementParser(tokens).ParseBody({}));
  parsed->names = tokens.TakeNames();
  return parsed;
}

}  // namespace llm::jinja
