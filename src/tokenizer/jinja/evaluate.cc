// Expressions. Evaluate is the only function that recurses into children, and it counts depth and
// steps.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/interpreter.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/print.h"

namespace llm::jinja {

absl::StatusOr<Value> Interpreter::Evaluate(const Expression& expression) {
  LLM_RETURN_IF_ERROR(runtime_.budget().Step());
  DepthGuard depth(runtime_.budget());
  LLM_RETURN_IF_ERROR(depth.status());
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return static_cast<const ConstantExpression&>(expression).value;
    case ExpressionKind::kName:
      return Lookup(static_cast<const NameExpression&>(expression).name);
    case ExpressionKind::kItems:
      return EvaluateItems(static_cast<const ItemsExpression&>(expression));
    case ExpressionKind::kDict:
      return EvaluateDict(static_cast<const DictExpression&>(expression));
    case ExpressionKind::kArithmetic:
      return EvaluateArithmetic(static_cast<const ArithmeticExpression&>(expression));
    case ExpressionKind::kConcat:
      return EvaluateConcat(static_cast<const ConcatExpression&>(expression));
    case ExpressionKind::kCompare:
      return EvaluateCompare(static_cast<const CompareExpression&>(expression));
    case ExpressionKind::kLogical:
      return EvaluateLogical(static_cast<const LogicalExpression&>(expression));
    case ExpressionKind::kNot:
      return EvaluateNot(static_cast<const NotExpression&>(expression));
    case ExpressionKind::kSign:
      return EvaluateSign(static_cast<const SignExpression&>(expression));
    case ExpressionKind::kConditional:
      return EvaluateConditional(static_cast<const ConditionalExpression&>(expression));
    case ExpressionKind::kPostfix:
      return EvaluatePostfix(static_cast<const PostfixExpression&>(expression));
  }
  return Value();
}

absl::StatusOr<Value> Interpreter::EvaluateOptional(const ExpressionPtr& expression) {
  if (expression == nullptr) return Value();
  return Evaluate(*expression);
}

absl::StatusOr<Value> Interpreter::EvaluateItems(const ItemsExpression& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExpressionPtr& item : node.items) {
    LLM_ASSIGN_OR_RETURN(Value value, Evaluate(*item));
    items.push_back(std::move(value));
  }
  return runtime_.NewList(std::move(items), node.sequence_kind);
}

absl::StatusOr<Value> Interpreter::EvaluateDict(const DictExpression& node) {
  Dict dict;
  for (const auto& [key_node, value_node] : node.entries) {
    LLM_ASSIGN_OR_RETURN(Value key, Evaluate(*key_node));
    LLM_ASSIGN_OR_RETURN(Value value, Evaluate(*value_node));
    LLM_RETURN_IF_ERROR(runtime_.AddEntry(&dict, std::move(key), std::move(value)));
  }
  return runtime_.NewDict(std::move(dict));
}

absl::StatusOr<Value> Interpreter::EvaluateArithmetic(const ArithmeticExpression& node) {
  LLM_ASSIGN_OR_RETURN(Value left, Evaluate(*node.first));
  for (const auto& [op, operand] : node.rest) {
    LLM_ASSIGN_OR_RETURN(const Value right, Evaluate(*operand));
    LLM_ASSIGN_OR_RETURN(left, Arithmetic(runtime_, op, left, right));
  }
  return left;
}

absl::StatusOr<Value> Interpreter::EvaluateConcat(const ConcatExpression& node) {
  std::string text;
  TextSpans literal;
  for (const ExpressionPtr& operand : node.operands) {
    LLM_ASSIGN_OR_RETURN(const Value value, Evaluate(*operand));
    const size_t begin = text.size();
    LLM_RETURN_IF_ERROR(AppendText(runtime_, value, &text));
    LLM_RETURN_IF_ERROR(runtime_.Mark(value, begin, text.size(), &literal));
  }
  return runtime_.NewText(std::move(text), std::move(literal));
}

absl::StatusOr<Value> Interpreter::EvaluateCompare(const CompareExpression& node) {
  LLM_ASSIGN_OR_RETURN(Value left, Evaluate(*node.first));
  for (const auto& [op, operand] : node.rest) {
    LLM_ASSIGN_OR_RETURN(Value right, Evaluate(*operand));
    LLM_ASSIGN_OR_RETURN(const bool holds, Compare(runtime_, op, left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

// As in Python, the result is the operand that decided, not a bool.
absl::StatusOr<Value> Interpreter::EvaluateLogical(const LogicalExpression& node) {
  Value value;
  for (const ExpressionPtr& operand : node.operands) {
    LLM_ASSIGN_OR_RETURN(value, Evaluate(*operand));
    if (value.Truth() != node.all) break;
  }
  return value;
}

absl::StatusOr<Value> Interpreter::EvaluateNot(const NotExpression& node) {
  LLM_ASSIGN_OR_RETURN(const Value value, Evaluate(*node.operand));
  return Value::Bool(value.Truth() != node.negate);
}

absl::StatusOr<Value> Interpreter::EvaluateSign(const SignExpression& node) {
  LLM_ASSIGN_OR_RETURN(Value value, Evaluate(*node.operand));
  if (value.IsUndefined()) return absl::InvalidArgumentError(value.UndefinedReason());
  if (node.minus) return Negate(value);
  if (value.IsBool()) return Value::Int(value.integer());
  if (value.IsNumber()) return value;
  return absl::InvalidArgumentError(absl::StrCat("'", value.TypeName(), "' has no sign"));
}

absl::StatusOr<Value> Interpreter::EvaluateConditional(const ConditionalExpression& node) {
  LLM_ASSIGN_OR_RETURN(const Value condition, Evaluate(*node.condition));
  if (condition.Truth()) return Evaluate(*node.then);
  return EvaluateOptional(node.otherwise);
}

absl::StatusOr<Value> Interpreter::EvaluatePostfix(const PostfixExpression& node) {
  LLM_ASSIGN_OR_RETURN(Value value, Evaluate(*node.base));
  for (const Suffix& suffix : node.suffixes) {
    LLM_RETURN_IF_ERROR(ApplySuffix(suffix, &value));
  }
  return value;
}

}  // namespace llm::jinja
