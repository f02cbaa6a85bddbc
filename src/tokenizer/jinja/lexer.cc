// trim_blocks and lstrip_blocks are on, as transformers renders chat templates: the line end after
// a block tag goes, and so does the white space before one that is first on its line.
#include "src/tokenizer/jinja/lexer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

constexpr size_t kNone = absl::string_view::npos;

bool IsNameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

class Lexer {
 public:
  explicit Lexer(absl::string_view source) : source_(source) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (position_ < source_.size()) {
      const size_t tag = FindTag(position_);
      EmitData(tag);
      if (tag == kNone) break;
      LLM_RETURN_IF_ERROR(LexTag());
    }
    Emit(TokenKind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  absl::string_view Rest() const { return source_.substr(position_); }
  bool At(absl::string_view text) const { return absl::StartsWith(Rest(), text); }
  char Peek(size_t ahead) const {
    return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0';
  }

  void Emit(TokenKind kind, absl::string_view text) { tokens_.push_back({kind, text, line_}); }

  void Advance(size_t bytes) {
    const absl::string_view passed = source_.substr(position_, bytes);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    position_ += passed.size();
  }

  void SkipSpace() { Advance(Rest().size() - Strip(Rest(), StripSide::kLeft).size()); }

  size_t FindTag(size_t from) const {
    for (size_t brace = source_.find('{', from); brace != kNone;
         brace = source_.find('{', brace + 1)) {
      const char next = brace + 1 < source_.size() ? source_[brace + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return brace;
    }
    return kNone;
  }

  // Text up to `tag`, cut as the tag's sign asks; stands on the tag afterwards.
  void EmitData(size_t tag) {
    absl::string_view data = source_.substr(position_, tag == kNone ? kNone : tag - position_);
    const size_t raw_bytes = data.size();
    if (tag != kNone) data = CutBefore(data, source_.substr(tag));
    if (!data.empty()) Emit(TokenKind::kData, data);
    Advance(raw_bytes);
  }

  absl::string_view CutBefore(absl::string_view data, absl::string_view tag) const {
    const char sign = tag.size() > 2 ? tag[2] : '\0';
    if (sign == '-') return Strip(data, StripSide::kRight);
    if (sign == '+' || tag[1] == '{') return data;
    const size_t line_end = data.rfind('\n');
    const size_t line_begin = line_end == kNone ? 0 : line_end + 1;
    const bool at_line_begin =
        line_end != kNone || position_ == 0 || source_[position_ - 1] == '\n';
    const bool blank = Strip(data.substr(line_begin), StripSide::kLeft).empty();
    return at_line_begin && blank ? data.substr(0, line_begin) : data;
  }

  // Behind a tag's end: `-` drops all white space, otherwise trim_blocks drops one line end.
  void CutAfter(bool minus, bool plus) {
    if (minus) return SkipSpace();
    if (!plus && At("\n")) Advance(1);
  }

  absl::Status LexTag() {
    const char kind = Peek(1);
    if (kind == '#') return LexComment();
    const size_t sign = Peek(2) == '-' || Peek(2) == '+' ? 1 : 0;
    if (kind == '%' && IsRaw(2 + sign)) return LexRaw(2 + sign);
    Emit(kind == '{' ? TokenKind::kExpression : TokenKind::kBlock, source_.substr(position_, 2));
    Advance(2 + sign);
    return LexInside(kind == '%');
  }

  absl::Status LexComment() {
    const int line = line_;
    // In `{#-#}` the minus belongs to the opening.
    const size_t opening = Peek(2) == '-' || Peek(2) == '+' ? 3 : 2;
    const size_t end = source_.find("#}", position_ + opening);
    if (end == kNone) return SyntaxError(line, "comment is not closed");
    const char sign = end > position_ + opening ? source_[end - 1] : '\0';
    Advance(end + 2 - position_);
    CutAfter(sign == '-', sign == '+');
    return absl::OkStatus();
  }

  // Length of `name` with its closing %} when that stands `from` bytes ahead, else 0.
  size_t TagLength(size_t from, absl::string_view name, char* sign) const {
    absl::string_view rest = source_.substr(std::min(source_.size(), position_ + from));
    const size_t before = rest.size();
    rest = Strip(rest, StripSide::kLeft);
    if (!absl::StartsWith(rest, name)) return 0;
    rest = Strip(rest.substr(name.size()), StripSide::kLeft);
    *sign = !rest.empty() && (rest[0] == '-' || rest[0] == '+') ? rest[0] : '\0';
    if (*sign != '\0') rest.remove_prefix(1);
    if (!absl::StartsWith(rest, "%}")) return 0;
    return before - rest.size() + 2;
  }

  bool IsRaw(size_t from) const {
    char sign = '\0';
    return TagLength(from, "raw", &sign) > 0 && sign != '+';
  }

  absl::Status LexRaw(size_t from) {
    const int line = line_;
    char sign = '\0';
    Advance(from + TagLength(from, "raw", &sign));
    if (sign == '-') SkipSpace();  // the line end after {% raw %} stays
    const size_t begin = position_;
    for (size_t tag = source_.find("{%", begin); tag != kNone; tag = source_.find("{%", tag + 2)) {
      const size_t opening =
          tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+') ? 3 : 2;
      char end_sign = '\0';
      const size_t length = TagLength(tag + opening - position_, "endraw", &end_sign);
      if (length == 0) continue;
      EmitData(tag);
      Advance(opening + length);
      CutAfter(end_sign == '-', end_sign == '+');
      return absl::OkStatus();
    }
    return SyntaxError(line, "raw block is not closed");
  }

  absl::Status LexInside(bool block) {
    const int line = line_;
    const absl::string_view end = block ? "%}" : "}}";
    open_brackets_.clear();
    while (true) {
      SkipSpace();
      if (position_ >= source_.size()) return SyntaxError(line, "tag is not closed");
      const bool minus = Peek(0) == '-';
      const bool plus = Peek(0) == '+' && block;
      const size_t sign = minus || plus ? 1 : 0;
      // Inside of brackets, }} closes two dicts rather than the tag.
      if (open_brackets_.empty() && source_.substr(position_ + sign, 2) == end) {
        Emit(block ? TokenKind::kBlockEnd : TokenKind::kExpressionEnd, end);
        Advance(sign + 2);
        if (block || minus) CutAfter(minus, plus);
        return absl::OkStatus();
      }
      LLM_RETURN_IF_ERROR(LexToken());
    }
  }

  absl::Status LexToken() {
    const char c = Peek(0);
    if (IsNameStart(c)) return Take(TokenKind::kName, NameLength());
    if (IsDigit(c)) return LexNumber();
    if (c == '"' || c == '\'') return LexString(c);
    return LexOperator();
  }

  absl::Status Take(TokenKind kind, size_t bytes) {
    Emit(kind, source_.substr(position_, bytes));
    Advance(bytes);
    return absl::OkStatus();
  }

  size_t NameLength() const {
    size_t length = 1;
    while (IsNamePart(Peek(length))) ++length;
    return length;
  }

  // Digits with single underscores between them, from `at` ahead; the position behind them.
  size_t Digits(size_t at) const {
    while (IsDigit(Peek(at)) || (Peek(at) == '_' && IsDigit(Peek(at + 1)))) ++at;
    return at;
  }

  absl::Status LexNumber() {
    const char base = absl::ascii_tolower(static_cast<unsigned char>(Peek(1)));
    if (Peek(0) == '0' && (base == 'x' || base == 'o' || base == 'b')) {
      return Take(TokenKind::kInteger, NameLength());
    }
    size_t length = Digits(0);
    bool is_float = false;
    // `a.0.1` is two subscripts, not an attribute of a float.
    const bool after_dot = position_ > 0 && source_[position_ - 1] == '.';
    if (!after_dot && Peek(length) == '.' && IsDigit(Peek(length + 1))) {
      length = Digits(length + 1);
      is_float = true;
    }
    const size_t exponent_sign = Peek(length + 1) == '+' || Peek(length + 1) == '-' ? 1 : 0;
    if (!after_dot && (Peek(length) == 'e' || Peek(length) == 'E') &&
        IsDigit(Peek(length + 1 + exponent_sign))) {
      length = Digits(length + 1 + exponent_sign);
      is_float = true;
    }
    return Take(is_float ? TokenKind::kFloat : TokenKind::kInteger, length);
  }

  absl::Status LexString(char quote) {
    for (size_t i = 1; position_ + i < source_.size(); ++i) {
      if (Peek(i) == '\\') {
        ++i;
      } else if (Peek(i) == quote) {
        return Take(TokenKind::kString, i + 1);
      }
    }
    return SyntaxError(line_, "string is not closed");
  }

  absl::Status LexOperator() {
    constexpr absl::string_view kDouble[] = {"**", "//", "==", "!=", "<=", ">="};
    for (const absl::string_view op : kDouble) {
      if (At(op)) return Take(TokenKind::kOperator, 2);
    }
    const char c = Peek(0);
    constexpr absl::string_view kSingle = "+-/*%~[](){}<>=.:|,;";
    if (kSingle.find(c) == kNone) {
      return SyntaxError(
          line_, absl::StrCat("unexpected character '", Rest().substr(0, CodePointBytes(c)), "'"));
    }
    if (c == '(' || c == '[' || c == '{') open_brackets_.push_back(c);
    if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_brackets_.empty() || open_brackets_.back() != open) {
        return SyntaxError(line_, absl::StrCat("unexpected '", Rest().substr(0, 1), "'"));
      }
      open_brackets_.pop_back();
    }
    return Take(TokenKind::kOperator, 1);
  }

  absl::string_view source_;
  size_t position_ = 0;
  int line_ = 1;
  std::string open_brackets_;
  std::vector<Token> tokens_;
};

}  // namespace

std::string NormalizeLineEnds(absl::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source) {
  return Lexer(source).Run();
}

absl::Status SyntaxError(int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("chat template line ", line, ": ", what));
}

}  // namespace llm::jinja
