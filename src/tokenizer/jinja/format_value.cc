// One value by one format spec. Numbers go through to_chars, since printf obeys the host's locale.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/format.h"
#include "src/tokenizer/jinja/print.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

// Longer numbers are not worth their cost; a double has at most 309 digits before the point.
constexpr int64_t kMaxPrecision = 1000;

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Digits at the start of `*text`, which are removed; `fallback` when there are none.
absl::StatusOr<int64_t> TakeNumber(absl::string_view* text, int64_t fallback) {
  size_t digits = 0;
  while (digits < text->size() &&
         absl::ascii_isdigit(static_cast<unsigned char>((*text)[digits]))) {
    ++digits;
  }
  if (digits == 0) return fallback;
  int64_t number = 0;
  if (!absl::SimpleAtoi(text->substr(0, digits), &number)) {
    return absl::InvalidArgumentError("number in a format is too large");
  }
  text->remove_prefix(digits);
  return number;
}

bool TakeChar(absl::string_view* text, absl::string_view chars, char* taken) {
  if (text->empty() || chars.find((*text)[0]) == absl::string_view::npos) return false;
  *taken = (*text)[0];
  text->remove_prefix(1);
  return true;
}

std::string SignText(bool negative, char sign) {
  if (negative) return "-";
  return sign == '-' ? "" : std::string(1, sign);
}

std::string GroupDigits(const std::string& digits, char separator) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % 3 == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(end);
}

absl::StatusOr<std::string> IntDigits(int64_t value, const FormatSpec& spec) {
  const uint64_t magnitude =
      value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (spec.type == 'c') {
    const bool valid = value >= 0 && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    if (!valid) return absl::InvalidArgumentError("%c needs a code point");
    std::string text;
    AppendCodePoint(static_cast<uint32_t>(value), &text);
    return text;
  }
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(spec.type));
  const int base = lower == 'x' ? 16 : lower == 'o' ? 8 : lower == 'b' ? 2 : 10;
  char buffer[70];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base);
  std::string digits(buffer, end.ptr);
  if (spec.grouping != '\0' && base == 10) digits = GroupDigits(digits, spec.grouping);
  if (spec.alternate && base != 10) digits = absl::StrCat("0", std::string(1, lower), digits);
  if (spec.type == 'X') absl::AsciiStrToUpper(&digits);
  return digits;
}

std::string Chars(double magnitude, std::chars_format format, int precision) {
  std::string buffer(static_cast<size_t>(precision) + 400, '\0');
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, format, precision);
  buffer.resize(static_cast<size_t>(end.ptr - buffer.data()));
  return buffer;
}

absl::StatusOr<std::string> FloatDigits(double value, const FormatSpec& spec) {
  if (spec.precision > kMaxPrecision) return absl::InvalidArgumentError("precision is too large");
  const double magnitude = std::fabs(value);
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  std::string digits;
  switch (absl::ascii_tolower(static_cast<unsigned char>(spec.type))) {
    case '%':
      digits = Chars(magnitude * 100, std::chars_format::fixed, precision) + "%";
      break;
    case 'f':
      digits = Chars(magnitude, std::chars_format::fixed, precision);
      break;
    case 'e':
      digits = Chars(magnitude, std::chars_format::scientific, precision);
      break;
    default:
      digits = spec.type == '\0' && spec.precision < 0
                   ? FloatRepr(magnitude)
                   : Chars(magnitude, std::chars_format::general, std::max(precision, 1));
  }
  if (spec.grouping != '\0') digits = GroupDigits(digits, spec.grouping);
  if (absl::ascii_isupper(static_cast<unsigned char>(spec.type))) absl::AsciiStrToUpper(&digits);
  return digits;
}

}  // namespace

absl::StatusOr<FormatSpec> ParseFormatSpec(absl::string_view text) {
  FormatSpec spec;
  const size_t fill_bytes = text.empty() ? 0 : CodePointBytes(text[0]);
  if (text.size() > fill_bytes && fill_bytes > 0 && IsAlign(text[fill_bytes])) {
    spec.fill = std::string(text.substr(0, fill_bytes));
    spec.align = text[fill_bytes];
    text.remove_prefix(fill_bytes + 1);
  } else {
    TakeChar(&text, "<>^=", &spec.align);
  }
  TakeChar(&text, "+- ", &spec.sign);
  char mark = '\0';
  spec.alternate = TakeChar(&text, "#", &mark);
  if (TakeChar(&text, "0", &mark) && spec.align == '\0') {
    spec.fill.assign(1, '0');
    spec.align = '=';
  }
  LLM_ASSIGN_OR_RETURN(spec.width, TakeNumber(&text, 0));
  TakeChar(&text, ",_", &spec.grouping);
  if (TakeChar(&text, ".", &mark)) {
    LLM_ASSIGN_OR_RETURN(spec.precision, TakeNumber(&text, -1));
    if (spec.precision < 0) return absl::InvalidArgumentError("format lacks a precision");
  }
  TakeChar(&text, "bcdeEfFgGnosxX%", &spec.type);
  if (!text.empty()) return absl::InvalidArgumentError("malformed format");
  return spec;
}

absl::StatusOr<std::string> PadText(Runtime& runtime, std::string text, const FormatSpec& spec,
                                    char default_align) {
  const size_t length = CodePointCount(text);
  const auto width = static_cast<uint64_t>(std::max<int64_t>(spec.width, 0));
  if (width <= length) return text;
  const uint64_t missing = width - length;
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(missing > (1ull << 60) ? missing : missing * 4));
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(missing));
  const char align = spec.align == '\0' ? default_align : spec.align;
  const size_t sign =
      align == '=' && !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
  uint64_t before = missing;
  if (align == '<') before = 0;
  if (align == '^') before = missing / 2;
  if (align == kCenter) before = missing / 2 + (missing & width & 1);
  std::string out = text.substr(0, sign);
  for (uint64_t i = 0; i < before; ++i) out += spec.fill;
  out.append(text, sign, std::string::npos);
  for (uint64_t i = before; i < missing; ++i) out += spec.fill;
  return out;
}

absl::StatusOr<std::string> FormatValue(Runtime& runtime, const Value& value,
                                        const FormatSpec& spec) {
  const bool as_text = spec.type == '\0' || spec.type == 's';
  if (!value.IsNumber() || (value.IsBool() && as_text) || spec.type == 's') {
    if (!as_text) {
      return absl::InvalidArgumentError(absl::StrCat("format '", std::string(1, spec.type),
                                                     "' does not fit '", value.TypeName(), "'"));
    }
    LLM_ASSIGN_OR_RETURN(std::string text, ToText(runtime, value));
    if (spec.precision >= 0) text.resize(ByteOffset(text, static_cast<size_t>(spec.precision)));
    return PadText(runtime, std::move(text), spec, '<');
  }
  const bool as_float =
      value.IsFloat() || absl::string_view("eEfFgG%").find(spec.type) != absl::string_view::npos;
  if (value.IsFloat() && absl::string_view("bcdoxX").find(spec.type) != absl::string_view::npos) {
    return absl::InvalidArgumentError("an integer format does not fit a float");
  }
  const bool negative = as_float ? std::signbit(value.number()) : value.integer() < 0;
  LLM_ASSIGN_OR_RETURN(const std::string digits, as_float ? FloatDigits(value.number(), spec)
                                                          : IntDigits(value.integer(), spec));
  return PadText(runtime, SignText(negative, spec.sign) + digits, spec, '>');
}

}  // namespace llm::jinja
