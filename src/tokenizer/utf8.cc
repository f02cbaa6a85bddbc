// UTF-8 by the table of well-formed sequences: only the second byte has a range that depends on the
// first.
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

struct LeadByte {
  uint8_t length;  // 0: no sequence starts with it
  uint8_t second_min;
  uint8_t second_max;
};

LeadByte ClassifyLead(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};  // shorter forms exist below
  if (lead == 0xED) return {3, 0x80, 0x9F};  // surrogates above
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};  // beyond U+10FFFF above
  return {0, 0, 0};
}

}  // namespace

Utf8Part NextUtf8Part(absl::string_view text) {
  constexpr char32_t kReplacement = 0xFFFD;
  if (text.empty()) return {Utf8Kind::kIncomplete, 0, kReplacement};
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const LeadByte lead = ClassifyLead(byte(0));
  if (lead.length == 0) return {Utf8Kind::kInvalid, 1, kReplacement};
  if (lead.length == 1) return {Utf8Kind::kValid, 1, byte(0)};
  char32_t code_point = byte(0) & (0x7Fu >> lead.length);
  for (uint8_t i = 1; i < lead.length; ++i) {
    if (i >= text.size()) return {Utf8Kind::kIncomplete, i, kReplacement};
    const uint8_t low = i == 1 ? lead.second_min : 0x80;
    const uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Kind::kInvalid, i, kReplacement};
    code_point = (code_point << 6) | (byte(i) & 0x3Fu);
  }
  return {Utf8Kind::kValid, lead.length, code_point};
}

size_t ValidUtf8Prefix(absl::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Utf8Part part = NextUtf8Part(text.substr(end));
    if (part.kind != Utf8Kind::kValid) break;
    end += part.length;
  }
  return end;
}

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const size_t valid = ValidUtf8Prefix(text);
    result.append(text.data(), valid);
    text.remove_prefix(valid);
    if (text.empty()) return result;
    result.append(kReplacementCharacter.data(), kReplacementCharacter.size());
    text.remove_prefix(NextUtf8Part(text).length);
  }
}

void AppendUtf8(char32_t code_point, std::string* text) {
  const auto push = [text](char32_t byte) { text->push_back(static_cast<char>(byte)); };
  const auto continuation = [&](int shift) { push(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    continuation(0);
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    continuation(6);
    continuation(0);
  } else {
    push(0xF0 | (code_point >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

namespace {

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace

size_t WhiteSpacePrefix(absl::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Utf8Part part = NextUtf8Part(text.substr(length));
    if (!IsWhiteSpace(part.code_point)) break;
    length += part.length;
  }
  return length;
}

size_t WhiteSpaceSuffix(absl::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t start = begin - 1;
    while (start > 0 && (text[start] & 0xC0) == 0x80) --start;
    if (!IsWhiteSpace(NextUtf8Part(text.substr(start, begin - start)).code_point)) break;
    begin = start;
  }
  return text.size() - begin;
}

}  // namespace llm
