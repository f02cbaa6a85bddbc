// Filters that make numbers.
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/arguments.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/format.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/parse_number.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// Without underscores between digits; false when one stands elsewhere.
bool RemoveUnderscores(absl::string_view text, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out->push_back(text[i]);
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() &&
                         absl::ascii_isalnum(static_cast<unsigned char>(text[i - 1])) &&
                         absl::ascii_isalnum(static_cast<unsigned char>(text[i + 1]));
    if (!between) return false;
  }
  return true;
}

bool FloatToInt(double number, int64_t* value) {
  if (!(number > -9.2e18 && number < 9.2e18)) return false;
  *value = static_cast<int64_t>(number);
  return true;
}

Result IntFilter(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"default", "base"}));
  if (self.IsUndefined()) return absl::InvalidArgumentError(self.UndefinedReason());
  LLM_ASSIGN_OR_RETURN(const int64_t base, bound.IntOr(1, 10));
  int64_t value = 0;
  double number = 0;
  if (self.IsIntegral()) return Value::Int(self.integer());
  if (self.IsFloat() && FloatToInt(self.number(), &value)) return Value::Int(value);
  if (self.IsText()) {
    const bool valid_base = base == 0 || (base >= 2 && base <= 36);
    if (valid_base && ParseInt(self.text(), static_cast<int>(base), &value))
      return Value::Int(value);
    if (ParseFloat(self.text(), &number) && FloatToInt(number, &value)) return Value::Int(value);
  }
  return bound.Or(0, Value::Int(0));
}

Result FloatFilter(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"default"}));
  if (self.IsUndefined()) return absl::InvalidArgumentError(self.UndefinedReason());
  double number = 0;
  if (self.IsNumber()) return Value::Float(self.number());
  if (self.IsText() && ParseFloat(self.text(), &number)) return Value::Float(number);
  return bound.Or(0, Value::Float(0.0));
}

Result AbsFilter(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  if (self.IsFloat()) return Value::Float(std::fabs(self.number()));
  if (!self.IsIntegral()) return absl::InvalidArgumentError("needs a number");
  return self.integer() < 0 ? Negate(self) : Value::Int(self.integer());
}

// Python rounds the exact value, which the shortest fixed digits of that precision do.
Result RoundCommon(Runtime& runtime, const Value& self, int64_t precision) {
  if (precision < 0 || precision > 300) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    if (precision > 300 || std::isinf(scale)) return self;
    return Value::Float(std::nearbyint(self.number() / scale) * scale);
  }
  if (!std::isfinite(self.number())) return self;
  FormatSpec spec;
  spec.type = 'f';
  spec.precision = precision;
  LLM_ASSIGN_OR_RETURN(const std::string digits,
                       FormatValue(runtime, Value::Float(self.number()), spec));
  double rounded = 0;
  if (!absl::SimpleAtod(digits, &rounded)) return absl::InvalidArgumentError("cannot round");
  return Value::Float(rounded);
}

Result RoundFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"precision", "method"}));
  LLM_ASSIGN_OR_RETURN(const int64_t precision, bound.IntOr(0, 0));
  LLM_ASSIGN_OR_RETURN(const absl::string_view method, bound.TextOr(1, "common"));
  if (!self.IsNumber()) return absl::InvalidArgumentError("needs a number");
  if (method == "common") {
    if (self.IsIntegral() && precision >= 0) return Value::Int(self.integer());
    return RoundCommon(runtime, self, precision);
  }
  if (method != "ceil" && method != "floor") {
    return absl::InvalidArgumentError("method must be common, ceil or floor");
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = self.number() * scale;
  return Value::Float((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Result FileSizeFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"binary"}));
  double bytes = 0;
  if (self.IsNumber()) {
    bytes = self.number();
  } else if (!self.IsText() || !ParseFloat(self.text(), &bytes)) {
    return absl::InvalidArgumentError("needs a number");
  }
  const bool binary = bound.TruthOr(0, false);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return runtime.NewText(absl::string_view("1 Byte"));
  if (!(bytes >= base)) {
    int64_t whole = 0;
    if (!FloatToInt(bytes, &whole)) return absl::InvalidArgumentError("needs a finite number");
    return runtime.NewText(absl::StrCat(whole, " Bytes"));
  }
  constexpr absl::string_view kPrefixes = "kMGTPEZY";
  size_t power = 0;
  double unit = base * base;
  while (power + 1 < kPrefixes.size() && bytes >= unit) {
    unit *= base;
    ++power;
  }
  FormatSpec spec;
  spec.type = 'f';
  spec.precision = 1;
  LLM_ASSIGN_OR_RETURN(const std::string number,
                       FormatValue(runtime, Value::Float(base * bytes / unit), spec));
  std::string prefix(1, kPrefixes[power]);
  if (binary) prefix = absl::AsciiStrToUpper(prefix) + "i";
  return runtime.NewText(absl::StrCat(number, " ", prefix, "B"));
}

constexpr NamedBuiltin kFilters[] = {
    {"abs", AbsFilter},     {"filesizeformat", FileSizeFilter},
    {"float", FloatFilter}, {"int", IntFilter},
    {"round", RoundFilter},
};

}  // namespace

bool ParseInt(absl::string_view text, int base, int64_t* value) {
  std::string digits;
  if (!RemoveUnderscores(Strip(text, StripSide::kBoth), &digits) || digits.empty()) return false;
  return absl::numbers_internal::safe_strto64_base(digits, value, base);
}

bool ParseFloat(absl::string_view text, double* value) {
  std::string digits;
  if (!RemoveUnderscores(Strip(text, StripSide::kBoth), &digits)) return false;
  if (digits.find_first_of("xX(") != std::string::npos) return false;
  return absl::SimpleAtod(digits, value);
}

absl::Span<const NamedBuiltin> NumberFilters() { return kFilters; }

}  // namespace llm::jinja
