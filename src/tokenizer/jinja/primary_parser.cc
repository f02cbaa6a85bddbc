// Names, literals and brackets.
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/expression_parser.h"
#include "src/tokenizer/jinja/parser.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

ExpressionPtr Constant(Value value) {
  return std::make_unique<ConstantExpression>(std::move(value));
}

// Digits of an escape: \xHH, \uHHHH, \UHHHHHHHH. False when one is not hexadecimal or too few are
// left.
bool ReadHex(absl::string_view text, size_t digits, uint32_t* value) {
  if (text.size() < digits) return false;
  return absl::SimpleHexAtoi(text.substr(0, digits), value) &&
         text.substr(0, digits).find_first_not_of("0123456789abcdefABCDEF") ==
             absl::string_view::npos;
}

// An octal escape has up to three digits; returns how many.
size_t ReadOctal(absl::string_view text, uint32_t* value) {
  size_t digits = 0;
  while (digits < 3 && digits < text.size() && text[digits] >= '0' && text[digits] <= '7') {
    *value = *value * 8 + static_cast<uint32_t>(text[digits++] - '0');
  }
  return digits;
}

// Resolves the escape behind a backslash at the start of `text`; returns the bytes read, 0 when
// malformed.
size_t ReadEscape(absl::string_view text, std::string* out) {
  constexpr absl::string_view kLetters = "abfnrtv\\'\"";
  constexpr absl::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char letter = text[0];
  const size_t simple = kLetters.find(letter);
  if (simple != absl::string_view::npos) {
    out->push_back(kMeanings[simple]);
    return 1;
  }
  if (letter == '\n') return 1;  // a continued line
  uint32_t code_point = 0;
  size_t bytes = ReadOctal(text, &code_point);
  const size_t hex = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (hex > 0) {
    if (!ReadHex(text.substr(1), hex, &code_point)) return 0;
    bytes = 1 + hex;
  } else if (bytes == 0) {
    if (letter == 'N') return 0;  // names of characters: no table of them here
    out->push_back('\\');         // Python keeps the backslash of an escape that it does not know
    const size_t length = CodePointBytes(letter);
    out->append(text.data(), std::min(length, text.size()));
    return length;
  }
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (surrogate || code_point > 0x10FFFF) return 0;
  AppendCodePoint(code_point, out);
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> UnescapeString(const Token& token) {
  absl::string_view text = token.text.substr(1, token.text.size() - 2);
  std::string out;
  while (!text.empty()) {
    const size_t plain = text.find('\\');
    out.append(text.data(), std::min(plain, text.size()));
    if (plain == absl::string_view::npos) break;
    text.remove_prefix(plain + 1);
    const size_t bytes = ReadEscape(text, &out);
    if (bytes == 0) return SyntaxError(token.line, "malformed escape in a string");
    text.remove_prefix(std::min(bytes, text.size()));
  }
  return out;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParsePrimary() {
  switch (tokens_.Peek().kind) {
    case TokenKind::kName:
      return ParseName();
    case TokenKind::kString:
      return ParseString();
    case TokenKind::kInteger:
      return ParseInteger();
    case TokenKind::kFloat:
      return ParseFloat();
    default:
      break;
  }
  if (tokens_.TakeOperator("(")) return ParseParentheses();
  if (tokens_.TakeOperator("[")) return ParseList();
  if (tokens_.TakeOperator("{")) return ParseDict();
  return tokens_.Unexpected("an expression");
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseName() {
  const absl::string_view name = tokens_.Next().text;
  if (name == "true" || name == "True") return Constant(Value::Bool(true));
  if (name == "false" || name == "False") return Constant(Value::Bool(false));
  if (name == "none" || name == "None") return Constant(Value::None());
  const NameId id = tokens_.Intern(name);
  tokens_.uses.caller |= id == kCallerName;
  tokens_.uses.varargs |= id == kVarargsName;
  tokens_.uses.kwargs |= id == kKwargsName;
  return std::make_unique<NameExpression>(id);
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseString() {
  std::string text;
  while (tokens_.Peek().kind == TokenKind::kString) {  // neighbours are one string
    LLM_ASSIGN_OR_RETURN(const std::string part, UnescapeString(tokens_.Next()));
    text += part;
  }
  return Constant(Value::Of(std::make_shared<const Text>(Text{std::move(text), false})));
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseInteger() {
  const Token token = tokens_.Next();
  const std::string digits = absl::StrReplaceAll(token.text, {{"_", ""}});
  const char base = digits.size() > 1 ? digits[1] : '0';
  int radix = 10;
  if (base == 'x' || base == 'X') radix = 16;
  if (base == 'o' || base == 'O') radix = 8;
  if (base == 'b' || base == 'B') radix = 2;
  int64_t value = 0;
  const absl::string_view number = radix == 10 ? digits : absl::string_view(digits).substr(2);
  if (!absl::numbers_internal::safe_strto64_base(number, &value, radix)) {
    return SyntaxError(token.line, absl::StrCat("integer ", token.text.substr(0, 40),
                                                " is malformed or does not fit 64 bits"));
  }
  return Constant(Value::Int(value));
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseFloat() {
  const Token token = tokens_.Next();
  double value = 0;
  if (!absl::SimpleAtod(absl::StrReplaceAll(token.text, {{"_", ""}}), &value)) {
    return SyntaxError(token.line, "malformed number");
  }
  return Constant(Value::Float(value));
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseParentheses() {
  if (tokens_.TakeOperator(")")) return std::make_unique<ItemsExpression>(SequenceKind::kTuple);
  LLM_ASSIGN_OR_RETURN(ExpressionPtr inner, ParseTuple());
  LLM_RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
  return inner;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseList() {
  auto list = std::make_unique<ItemsExpression>(SequenceKind::kList);
  while (!tokens_.TakeOperator("]")) {
    LLM_ASSIGN_OR_RETURN(ExpressionPtr item, Parse());
    list->items.push_back(list->Adopt(std::move(item)));
    if (!tokens_.AtOperator("]")) LLM_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
  }
  return list;
}

absl::StatusOr<ExpressionPtr> ExpressionParser::ParseDict() {
  auto dict = std::make_unique<DictExpression>();
  while (!tokens_.TakeOperator("}")) {
    LLM_ASSIGN_OR_RETURN(ExpressionPtr key, Parse());
    LLM_RETURN_IF_ERROR(tokens_.ExpectOperator(":"));
    LLM_ASSIGN_OR_RETURN(ExpressionPtr value, Parse());
    key = dict->Adopt(std::move(key));
    value = dict->Adopt(std::move(value));
    dict->entries.emplace_back(std::move(key), std::move(value));
    if (!tokens_.AtOperator("}")) LLM_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
  }
  return dict;
}

}  // namespace llm::jinja
