// Arithmetic operators on values of any kind: numbers, text, lists.
#include "src/tokenizer/jinja/operators.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/format.h"
#include "src/tokenizer/jinja/literal.h"
#include "src/tokenizer/jinja/print.h"

namespace llm::jinja {
namespace {

absl::string_view Symbol(BinaryOp op) {
  constexpr absl::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<size_t>(op)];
}

absl::Status Unsupported(BinaryOp op, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->IsUndefined()) return absl::InvalidArgumentError(value->UndefinedReason());
  }
  return absl::InvalidArgumentError(absl::StrCat("unsupported operands for ", Symbol(op), ": '",
                                                 left.TypeName(), "' and '", right.TypeName(),
                                                 "'"));
}

absl::StatusOr<Value> Concatenate(Runtime& runtime, const Value& left, const Value& right) {
  const bool markup = left.IsMarkup() || right.IsMarkup();
  const uint64_t bytes = left.text().size() + right.text().size();
  // Escaping makes a byte five at most.
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(markup ? 5 * bytes : bytes));
  if (!markup) {
    TextSpans literal;
    LLM_RETURN_IF_ERROR(runtime.Mark(left, 0, left.text().size(), &literal));
    LLM_RETURN_IF_ERROR(runtime.Mark(right, left.text().size(), bytes, &literal));
    return runtime.NewText(absl::StrCat(left.text(), right.text()), std::move(literal));
  }
  std::string text(left.text());
  if (!left.IsMarkup()) text = EscapeHtml(text);
  text += right.IsMarkup() ? std::string(right.text()) : EscapeHtml(right.text());
  return runtime.NewText(std::move(text), true);
}

absl::StatusOr<Value> Join(Runtime& runtime, const Sequence& left, const Sequence& right) {
  const uint64_t count = left.items.size() + right.items.size();
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(count * sizeof(Value)));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return runtime.NewList(std::move(items), left.kind);
}

absl::StatusOr<Value> Repeat(Runtime& runtime, const Value& value, int64_t times) {
  const uint64_t size =
      value.IsText() ? value.text().size() : value.sequence()->items.size() * sizeof(Value);
  const uint64_t count = times < 0 || size == 0 ? 0 : static_cast<uint64_t>(times);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = UINT64_MAX;
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(bytes));
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(bytes));
  if (value.IsText()) {
    std::string text;
    text.reserve(bytes);
    for (uint64_t i = 0; i < count; ++i) text.append(value.text().data(), size);
    return runtime.NewText(std::move(text), value.IsMarkup());
  }
  std::vector<Value> items;
  items.reserve(count * value.sequence()->items.size());
  for (uint64_t i = 0; i < count; ++i) {
    items.insert(items.end(), value.sequence()->items.begin(), value.sequence()->items.end());
  }
  return runtime.NewList(std::move(items), value.sequence()->kind);
}

bool IsRepeatable(const Value& value) {
  return value.IsText() || (value.IsSequence() && value.sequence()->IsListOrTuple());
}

}  // namespace

absl::StatusOr<Value> Arithmetic(Runtime& runtime, BinaryOp op, const Value& left,
                                 const Value& right) {
  if (left.IsNumber() && right.IsNumber()) return NumberArithmetic(op, left, right);
  const LiteralScope literal(
      runtime, runtime.marks_literal() && (MayBeLiteral(left) || MayBeLiteral(right)));
  if (op == BinaryOp::kAdd) {
    if (left.IsText() && right.IsText()) return Concatenate(runtime, left, right);
    const bool lists = left.IsSequence() && right.IsSequence() &&
                       left.sequence()->IsListOrTuple() &&
                       left.sequence()->kind == right.sequence()->kind;
    if (lists) return Join(runtime, *left.sequence(), *right.sequence());
  }
  if (op == BinaryOp::kMultiply) {
    if (IsRepeatable(left) && right.IsIntegral()) return Repeat(runtime, left, right.integer());
    if (IsRepeatable(right) && left.IsIntegral()) return Repeat(runtime, right, left.integer());
  }
  if (op == BinaryOp::kModulo && left.IsText()) return PercentFormat(runtime, left, right);
  return Unsupported(op, left, right);
}

}  // namespace llm::jinja
