// Operators by precedence. Every recursive call counts as depth, so that each level of it costs a
// bounded piece of stack.
#include "src/tokenizer/jinja/expression_parser.h"

#include <utility>

#include "src/base/status_macros.h"

namespace llm::jinja {
namespace {

// From loosest to tightest binding; `~` binds tighter than `+` in Jinja.
enum Level {
  kOr = 1,
  kAnd,
  kNot,
  kCompare,
  kAdditive,
  kConcat,
  kMultiplicative,
  kPower,
  kUnary,
};

BinaryOp ArithmeticOp(absl::string_view op) {
  if (op == "+") return BinaryOp::kAdd;
  if (op == "-") return BinaryOp::kSubtract;
  if (op == "*") return BinaryOp::kMultiply;
  if (op == "/") return BinaryOp::kDivide;
  if (op == "//") return BinaryOp::kFloorDivide;
  return op == "%" ? BinaryOp::kModulo : BinaryOp::kPower;
}

}  // namespace

absl::StatusOr<ExpressionPtr> ExpressionParser::Parse(bool conditional) {
  TokenStream::Depth depth(tokens_);
  LLM_RETURN_IF_ERROR(depth.status());
  LLM_ASSIGN_OR_RETURN(ExpressionPtr left, ParseOperators(kOr));
  while (conditional && tokens_.TakeName("if")) {
    auto node = std::make_unique<ConditionalExpression>();
    node->then = node->Adopt(std::move(left));
    LLM_ASSIGN_OR_RETURN(ExpressionPtr condition, ParseOperators(kOr));
    node->condition = node->Adopt(std::move(condition));
    if (tokens_.TakeName("else")) {
      LLM_ASSIGN_OR_RETURN(ExpressionPtr otherwise, Parse());
      node->otherwise = node->Adopt(std::move(otherwise));
    }
    LLM_RETURN_IF_ERROR(tokens_.CheckDepth(node->depth));
    left = std::move(node);
  }
  return left;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseTuple(bool conditional) {
  LLM_ASSIGN_OR_RETURN(ExpressionPtr first, Parse(conditional));
  if (!tokens_.AtOperator(",")) return first;
  auto tuple = std::make_unique<ItemsExpression>(SequenceKind::kTuple);
  tuple->items.push_back(tuple->Adopt(std::move(first)));
  while (tokens_.TakeOperator(",")) {
    const TokenKind next = tokens_.Peek().kind;
    const bool ends = next == TokenKind::kBlockEnd || next == TokenKind::kExpressionEnd ||
                      tokens_.AtOperator(")") || tokens_.AtName("recursive");
    if (ends) break;
    LLM_ASSIGN_OR_RETURN(ExpressionPtr item, Parse(conditional));
    tuple->items.push_back(tuple->Adopt(std::move(item)));
  }
  return tuple;
}

// The level of the operator that comes next, or 0.
int ExpressionParser::NextLevel() const {
  const absl::string_view text = tokens_.Peek().text;
  if (tokens_.Peek().kind == TokenKind::kName) {
    if (text == "or") return kOr;
    if (text == "and") return kAnd;
    const bool not_in =
        text == "not" && tokens_.Peek(1).kind == TokenKind::kName && tokens_.Peek(1).text == "in";
    return text == "in" || not_in ? kCompare : 0;
  }
  if (tokens_.Peek().kind != TokenKind::kOperator) return 0;
  if (text == "==" || text == "!=" || text == "<" || text == "<=" || text == ">" || text == ">=") {
    return kCompare;
  }
  if (text == "+" || text == "-") return kAdditive;
  if (text == "~") return kConcat;
  if (text == "*" || text == "/" || text == "//" || text == "%") return kMultiplicative;
  return text == "**" ? kPower : 0;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseOperators(int min_level) {
  TokenStream::Depth depth(tokens_);
  LLM_RETURN_IF_ERROR(depth.status());
  LLM_ASSIGN_OR_RETURN(ExpressionPtr left,
                       min_level <= kNot && tokens_.AtName("not") ? ParseNot() : ParseUnary());
  // Each round adds one chain of equal operators around what is already there, so the level can
  // only sink.
  for (int level = NextLevel(); level >= min_level && level != 0; level = NextLevel()) {
    LLM_RETURN_IF_ERROR(AddOperator(level, &left));
    LLM_RETURN_IF_ERROR(tokens_.CheckDepth(left->depth));
  }
  return left;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseNot() {
  auto node = std::make_unique<NotExpression>();
  node->negate = false;
  while (tokens_.TakeName("not")) node->negate = !node->negate;
  LLM_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseOperators(kCompare));
  node->operand = node->Adopt(std::move(operand));
  return node;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseOperand(int level) {
  return ParseOperators(level + 1);
}

absl::Status ExpressionParser::AddOperator(int level, ExpressionPtr* left) {
  switch (level) {
    case kOr:
    case kAnd:
      return AddLogical(level == kAnd, left);
    case kCompare:
      return AddCompare(left);
    case kConcat:
      return AddConcat(left);
    default:
      return AddArithmetic(level, left);
  }
}

absl::Status ExpressionParser::AddLogical(bool all, ExpressionPtr* left) {
  auto node = std::make_unique<LogicalExpression>(all);
  node->operands.push_back(node->Adopt(std::move(*left)));
  while (tokens_.TakeName(all ? "and" : "or")) {
    LLM_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseOperand(all ? kAnd : kOr));
    node->operands.push_back(node->Adopt(std::move(operand)));
  }
  *left = std::move(node);
  return absl::OkStatus();
}

absl::Status ExpressionParser::AddCompare(ExpressionPtr* left) {
  auto node = std::make_unique<CompareExpression>();
  node->first = node->Adopt(std::move(*left));
  while (NextLevel() == kCompare) {
    const absl::string_view text = tokens_.Next().text;
    CompareOp op = CompareOp::kEqual;
    if (text == "!=") op = CompareOp::kNotEqual;
    if (text == "<") op = CompareOp::kLess;
    if (text == "<=") op = CompareOp::kLessEqual;
    if (text == ">") op = CompareOp::kGreater;
    if (text == ">=") op = CompareOp::kGreaterEqual;
    if (text == "in") op = CompareOp::kIn;
    if (text == "not") {
      op = CompareOp::kNotIn;
      tokens_.Next();
    }
    LLM_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseOperand(kCompare));
    node->rest.emplace_back(op, node->Adopt(std::move(operand)));
  }
  *left = std::move(node);
  return absl::OkStatus();
}

absl::Status ExpressionParser::AddConcat(ExpressionPtr* left) {
  auto node = std::make_unique<ConcatExpression>();
  node->operands.push_back(node->Adopt(std::move(*left)));
  while (tokens_.TakeOperator("~")) {
    LLM_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseOperand(kConcat));
    node->operands.push_back(node->Adopt(std::move(operand)));
  }
  *left = std::move(node);
  return absl::OkStatus();
}

absl::Status ExpressionParser::AddArithmetic(int level, ExpressionPtr* left) {
  auto node = std::make_unique<ArithmeticExpression>();
  node->first = node->Adopt(std::move(*left));
  while (NextLevel() == level) {
    const BinaryOp op = ArithmeticOp(tokens_.Next().text);
    LLM_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseOperand(level));
    node->rest.emplace_back(op, node->Adopt(std::move(operand)));
  }
  *left = std::move(node);
  return absl::OkStatus();
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseUnary(bool with_filters) {
  if (!tokens_.AtOperator("-") && !tokens_.AtOperator("+")) {
    LLM_ASSIGN_OR_RETURN(ExpressionPtr primary, ParsePrimary());
    return ParseSuffixes(std::move(primary), with_filters);
  }
  TokenStream::Depth depth(tokens_);
  LLM_RETURN_IF_ERROR(depth.status());
  auto node = std::make_unique<SignExpression>(tokens_.Next().text == "-");
  LLM_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseUnary(false));
  node->operand = node->Adopt(std::move(operand));
  return ParseSuffixes(std::move(node), with_filters);
}

}  // namespace llm::jinja
