// Arithmetic on numbers: Python's floor division and modulo, with overflow as an error.
#include <cmath>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "src/tokenizer/jinja/operators.h"

namespace llm::jinja {
namespace {

absl::Status Overflow() {
  return absl::InvalidArgumentError("integer result does not fit 64 bits");
}

absl::Status DivisionByZero() { return absl::InvalidArgumentError("division by zero"); }

absl::StatusOr<Value> IntPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return DivisionByZero();
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value::Int(exponent == 0 ? 1 : base);
  if (base == -1) return Value::Int(exponent % 2 == 0 ? 1 : -1);
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) {  // overflows within 64 rounds
    if (__builtin_mul_overflow(result, base, &result)) return Overflow();
  }
  return Value::Int(result);
}

absl::StatusOr<Value> IntDivide(BinaryOp op, int64_t a, int64_t b) {
  if (b == 0) return DivisionByZero();
  if (op == BinaryOp::kDivide) return Value::Float(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) {  // the only divisor that can overflow
    int64_t negated = 0;
    if (op == BinaryOp::kModulo) return Value::Int(0);
    if (__builtin_sub_overflow(int64_t{0}, a, &negated)) return Overflow();
    return Value::Int(negated);
  }
  const bool round_down = a % b != 0 && (a < 0) != (b < 0);
  if (op == BinaryOp::kFloorDivide) return Value::Int(a / b - (round_down ? 1 : 0));
  return Value::Int(a % b + (round_down ? b : 0));
}

absl::StatusOr<Value> IntArithmetic(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOp::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOp::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOp::kPower:
      return IntPower(a, b);
    default:
      return IntDivide(op, a, b);
  }
  if (overflow) return Overflow();
  return Value::Int(result);
}

absl::StatusOr<Value> FloatArithmetic(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return Value::Float(a + b);
    case BinaryOp::kSubtract:
      return Value::Float(a - b);
    case BinaryOp::kMultiply:
      return Value::Float(a * b);
    case BinaryOp::kPower: {
      if (a == 0.0 && b < 0.0) return DivisionByZero();
      const double power = std::pow(a, b);
      if (std::isnan(power) && !std::isnan(a) && !std::isnan(b)) {
        return absl::InvalidArgumentError("power has no real value");
      }
      return Value::Float(power);
    }
    default:
      break;
  }
  if (b == 0.0) return DivisionByZero();
  if (op == BinaryOp::kDivide) return Value::Float(a / b);
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0.0 && (remainder < 0.0) != (b < 0.0)) {
    remainder += b;
    quotient -= 1.0;
  }
  if (op == BinaryOp::kModulo) return Value::Float(remainder);
  const double floor = std::floor(quotient);
  return Value::Float(quotient - floor > 0.5 ? floor + 1.0 : floor);
}

}  // namespace

absl::StatusOr<Value> NumberArithmetic(BinaryOp op, const Value& left, const Value& right) {
  if (left.IsIntegral() && right.IsIntegral()) {
    return IntArithmetic(op, left.integer(), right.integer());
  }
  return FloatArithmetic(op, left.number(), right.number());
}

absl::StatusOr<Value> Negate(const Value& value) {
  if (value.IsIntegral()) return IntArithmetic(BinaryOp::kSubtract, 0, value.integer());
  if (value.IsFloat()) return Value::Float(-value.number());
  return absl::InvalidArgumentError(absl::StrCat("cannot negate '", value.TypeName(), "'"));
}

}  // namespace llm::jinja
