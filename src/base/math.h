// Integer helpers: rounding, and arithmetic that reports overflow instead of wrapping.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

namespace llm {

template <std::integral T>
constexpr T CeilDiv(T a, T b) {
  return static_cast<T>((a + b - 1) / b);
}

template <std::integral T>
constexpr T RoundUp(T a, T multiple) {
  return static_cast<T>(CeilDiv(a, multiple) * multiple);
}

template <std::integral T>
constexpr bool IsPowerOfTwo(T a) {
  return a > 0 && (a & (a - 1)) == 0;
}

// nullopt when the result does not fit T. Sizes that come from a file go through these, never
// through a bare `*` or `+`.
template <std::integral T>
constexpr std::optional<T> CheckedMul(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
constexpr std::optional<T> CheckedAdd(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

}  // namespace llm
