// Arithmetic, comparison and subscripts with Python's meaning; integers have 64 bits, beyond is an
// error.
#pragma once

#include <compare>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/runtime.h"

namespace llm::jinja {

enum class BinaryOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

absl::StatusOr<Value> Arithmetic(Runtime& runtime, BinaryOp op, const Value& left,
                                 const Value& right);
absl::StatusOr<Value> Negate(const Value& value);

// For numbers only. INVALID_ARGUMENT on overflow and on division by zero.
absl::StatusOr<Value> NumberArithmetic(BinaryOp op, const Value& left, const Value& right);

absl::StatusOr<bool> Compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right);
absl::StatusOr<bool> Equal(Runtime& runtime, const Value& left, const Value& right);
// INVALID_ARGUMENT for kinds that have no order. Unordered: one is not a number.
absl::StatusOr<std::partial_ordering> Order(Runtime& runtime, const Value& left,
                                            const Value& right);
absl::StatusOr<bool> Contains(Runtime& runtime, const Value& container, const Value& item);

// object[key]; falls back to an attribute when there is no such item. Undefined when there is
// neither.
absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& object, const Value& key);
// object.name; falls back to an item.
absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& object, absl::string_view name);
// object[start:stop:step]; undefined and None mean "not given".
absl::StatusOr<Value> Slice(Runtime& runtime, const Value& object, const Value& start,
                            const Value& stop, const Value& step);

}  // namespace llm::jinja
