// Equality, order and membership. Shared lists can make a small value huge to walk, so that every
// visit is a step.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/dict.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/text_operations.h"

namespace llm::jinja {
namespace {

// long double holds every int64_t exactly, so that large integers and floats compare as in Python.
std::partial_ordering OrderNumbers(const Value& left, const Value& right) {
  if (left.IsIntegral() && right.IsIntegral()) return left.integer() <=> right.integer();
  const auto wide = [](const Value& value) {
    return value.IsFloat() ? static_cast<long double>(value.number())
                           : static_cast<long double>(value.integer());
  };
  return wide(left) <=> wide(right);
}

absl::StatusOr<bool> EqualItems(Runtime& runtime, const Sequence& left, const Sequence& right) {
  if (left.kind != right.kind || left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    LLM_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, left.items[i], right.items[i]));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<bool> EqualDicts(Runtime& runtime, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const Dict::Entry& entry : left.entries) {
    const Value* other = FindEntry(right, entry.key);
    if (other == nullptr) return false;
    LLM_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, entry.value, *other));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<std::partial_ordering> OrderItems(Runtime& runtime, const Sequence& left,
                                                 const Sequence& right) {
  const size_t common = std::min(left.items.size(), right.items.size());
  for (size_t i = 0; i < common; ++i) {
    LLM_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, left.items[i], right.items[i]));
    if (!equal) return Order(runtime, left.items[i], right.items[i]);
  }
  return std::partial_ordering(left.items.size() <=> right.items.size());
}

}  // namespace

absl::StatusOr<bool> Equal(Runtime& runtime, const Value& left, const Value& right) {
  LLM_RETURN_IF_ERROR(runtime.budget().Step());
  if (left.IsNumber() && right.IsNumber()) return OrderNumbers(left, right) == 0;
  if (left.IsText() && right.IsText()) {
    LLM_RETURN_IF_ERROR(runtime.budget().Scan(std::min(left.text().size(), right.text().size())));
    return left.text() == right.text();
  }
  if (left.IsUndefined() && right.IsUndefined()) return true;
  if (left.SameObject(right)) return true;
  DepthGuard depth(runtime.budget());
  LLM_RETURN_IF_ERROR(depth.status());
  if (left.IsDict() && right.IsDict()) return EqualDicts(runtime, left.dict(), right.dict());
  const bool comparable =
      left.IsSequence() && right.IsSequence() &&
      (left.sequence()->IsListOrTuple() || left.sequence()->kind == SequenceKind::kRange);
  if (!comparable) return false;
  return EqualItems(runtime, *left.sequence(), *right.sequence());
}

absl::StatusOr<std::partial_ordering> Order(Runtime& runtime, const Value& left,
                                            const Value& right) {
  LLM_RETURN_IF_ERROR(runtime.budget().Step());
  if (left.IsNumber() && right.IsNumber()) return OrderNumbers(left, right);
  if (left.IsText() && right.IsText()) {
    LLM_RETURN_IF_ERROR(runtime.budget().Scan(std::min(left.text().size(), right.text().size())));
    return std::partial_ordering(left.text().compare(right.text()) <=> 0);
  }
  const bool lists = left.IsSequence() && right.IsSequence() && left.sequence()->IsListOrTuple() &&
                     left.sequence()->kind == right.sequence()->kind;
  if (!lists) {
    return absl::InvalidArgumentError(
        absl::StrCat("no order between '", left.TypeName(), "' and '", right.TypeName(), "'"));
  }
  DepthGuard depth(runtime.budget());
  LLM_RETURN_IF_ERROR(depth.status());
  return OrderItems(runtime, *left.sequence(), *right.sequence());
}

absl::StatusOr<bool> Contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.IsText()) {
    if (!item.IsText()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'in <string>' requires a string on the left, not '", item.TypeName(), "'"));
    }
    LLM_RETURN_IF_ERROR(runtime.budget().Scan(container.text().size()));
    return FindText(container.text(), item.text()) != absl::string_view::npos;
  }
  if (container.IsDict()) {
    LLM_RETURN_IF_ERROR(EncodeKey(item).status());
    return FindEntry(container.dict(), item) != nullptr;
  }
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(container));
  for (const Value& candidate : items->items) {
    LLM_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, candidate, item));
    if (equal) return true;
  }
  return false;
}

absl::StatusOr<bool> Compare(Runtime& runtime, CompareOp op, const Value& left,
                             const Value& right) {
  if (op == CompareOp::kEqual) return Equal(runtime, left, right);
  if (op == CompareOp::kIn) return Contains(runtime, right, left);
  if (op == CompareOp::kNotEqual || op == CompareOp::kNotIn) {
    LLM_ASSIGN_OR_RETURN(const bool holds, op == CompareOp::kNotEqual
                                               ? Equal(runtime, left, right)
                                               : Contains(runtime, right, left));
    return !holds;
  }
  LLM_ASSIGN_OR_RETURN(const std::partial_ordering order, Order(runtime, left, right));
  switch (op) {
    case CompareOp::kLess:
      return order < 0;
    case CompareOp::kLessEqual:
      return order <= 0;
    case CompareOp::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

}  // namespace llm::jinja
