// An allowlist: what is on it means the same to both engines, with the white space classes spelled
// out by ExpandWhitespaceClasses.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/tokenizer/pre_tokenizer_patterns.h"

namespace llm {
namespace {

absl::Status Unsupported(absl::string_view construct) {
  return absl::UnimplementedError(
      absl::StrCat("pattern: \"", construct, "\" is not supported in it"));
}

// The length of "\p{L}" or "\x{4E00}" with a name or number inside, else 0.
size_t BracedLength(absl::string_view rest, absl::string_view letters) {
  if (rest.size() < 4 || letters.find(rest[1]) == absl::string_view::npos || rest[2] != '{')
    return 0;
  size_t at = 3;
  while (at < rest.size() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(rest[at])) || rest[at] == '_'))
    ++at;
  return at > 3 && at < rest.size() && rest[at] == '}' ? at + 1 : 0;
}

// The escape that `rest` begins with, and how many of its bytes that is.
absl::StatusOr<std::string> PortEscape(absl::string_view rest, size_t* length) {
  if (rest.size() < 2) return Unsupported("\\");
  const char c = rest[1];
  *length = 2;
  const auto same = [&] { return std::string(rest.substr(0, 2)); };
  if (absl::string_view("sSrntf").find(c) != absl::string_view::npos) return same();
  if (const size_t braced = BracedLength(rest, "pPx"); braced > 0) {
    *length = braced;
    return std::string(rest.substr(0, braced));
  }
  if (c == 'd') return std::string("\\p{Nd}");
  if (c == 'D') return std::string("\\P{Nd}");
  if (c == 'u' && rest.size() >= 6) {  // \u4E00
    for (const char digit : rest.substr(2, 4)) {
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit)))
        return Unsupported(rest.substr(0, 6));
    }
    *length = 6;
    return absl::StrCat("\\x{", rest.substr(2, 4), "}");
  }
  if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || (c & 0x80) != 0)
    return Unsupported(rest.substr(0, 2));
  return same();
}

// (?: (?i: (?! (?= (?<! (?<= and ( itself.
bool IsGroup(absl::string_view rest) {
  if (!absl::StartsWith(rest, "(?")) return !absl::StartsWith(rest, "(*");
  for (const absl::string_view known :
       {"(?:", "(?i:", "(?i)", "(?!", "(?=", "(?<!", "(?<=", "(?>"}) {
    if (absl::StartsWith(rest, known)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::string> PortPattern(absl::string_view pattern) {
  std::string ported;
  bool in_class = false;
  for (size_t at = 0; at < pattern.size();) {
    const absl::string_view rest = pattern.substr(at);
    size_t length = 1;
    if (rest[0] == '\\') {
      absl::StatusOr<std::string> escape = PortEscape(rest, &length);
      if (!escape.ok()) return escape.status();
      ported += *escape;
    } else {
      if (in_class && (rest[0] == '[' || absl::StartsWith(rest, "&&"))) {
        return Unsupported(rest.substr(0, 2));
      }
      if (!in_class && rest[0] == '(' && !IsGroup(rest)) return Unsupported(rest.substr(0, 4));
      // A class that begins with ] differs between engines.
      if (!in_class && rest[0] == '[' &&
          (absl::StartsWith(rest, "[]") || absl::StartsWith(rest, "[^]"))) {
        return Unsupported(rest.substr(0, 3));
      }
      if (!in_class && (rest[0] == '^' || rest[0] == '$')) return Unsupported(rest.substr(0, 1));
      // {1,3}+ and {,3} are read in two ways.
      if (!in_class && (absl::StartsWith(rest, "}+") || absl::StartsWith(rest, "{,"))) {
        return Unsupported(rest.substr(0, 2));
      }
      if (rest[0] == '[') in_class = true;
      if (rest[0] == ']') in_class = false;
      ported += rest[0];
    }
    at += length;
  }
  return ported;
}

std::string QuotePattern(absl::string_view text) {
  std::string quoted;
  for (const char c : text) {
    // PCRE2 takes an escaped character that is no letter or digit for itself.
    if ((c & 0x80) == 0 && !absl::ascii_isalnum(static_cast<unsigned char>(c))) quoted += '\\';
    quoted += c;
  }
  return quoted;
}

}  // namespace llm
