// Plain loops over UTF-8; no locale is consulted, since the host owns it.
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u; }

// Bytes of a well-formed code point at the start of `text`, or 0.
size_t ValidPrefix(absl::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const size_t bytes = CodePointBytes(text[0]);
  if (lead < 0xC2 || lead > 0xF4 || bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  size_t position = 0;
  const uint32_t code_point = NextCodePoint(text, &position);
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  const bool overlong = (bytes == 3 && code_point < 0x800) || (bytes == 4 && code_point < 0x10000);
  return surrogate || overlong || code_point > 0x10FFFF ? 0 : bytes;
}

bool Contains(absl::string_view chars, uint32_t code_point) {
  for (size_t i = 0; i < chars.size();) {
    if (NextCodePoint(chars, &i) == code_point) return true;
  }
  return false;
}

bool InRange(uint32_t value, uint32_t first, uint32_t last) {
  return value >= first && value <= last;
}

// Latin Extended-A pairs upper and lower case by parity; two stretches of it begin with an odd
// upper case.
bool LatinExtendedIsUpper(uint32_t c) {
  const bool odd_upper = InRange(c, 0x139, 0x148) || InRange(c, 0x179, 0x17E);
  return (c % 2 == 1) == odd_upper;
}

bool LatinExtendedHasCase(uint32_t c) {
  return InRange(c, 0x100, 0x17E) && c != 0x130 && c != 0x131 && c != 0x138 && c != 0x149 &&
         c != 0x178;
}

}  // namespace

size_t CodePointBytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = ValidPrefix(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

size_t CodePointCount(absl::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += IsContinuation(byte) ? 0 : 1;
  return count;
}

uint32_t NextCodePoint(absl::string_view text, size_t* position) {
  const auto lead = static_cast<unsigned char>(text[*position]);
  const size_t bytes = CodePointBytes(text[*position]);
  constexpr uint32_t kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t code_point = lead & kLeadMask[bytes];
  for (size_t i = 1; i < bytes && *position + i < text.size(); ++i) {
    code_point = code_point << 6 | (static_cast<unsigned char>(text[*position + i]) & 0x3Fu);
  }
  *position += bytes;
  return code_point;
}

size_t ByteOffset(absl::string_view text, size_t index) {
  size_t position = 0;
  for (; index > 0 && position < text.size(); --index) position += CodePointBytes(text[position]);
  return position < text.size() ? position : text.size();
}

void AppendCodePoint(uint32_t c, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool IsSpace(uint32_t c) {
  return InRange(c, 0x09, 0x0D) || InRange(c, 0x1C, 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || InRange(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

uint32_t ToUpper(uint32_t c) {
  if (InRange(c, 'a', 'z')) return c - 32;
  if (c < 0x80) return c;
  if (InRange(c, 0xE0, 0xFE) && c != 0xF7) return c - 32;
  if (c == 0xFF) return 0x178;
  if (c == 0xB5) return 0x39C;
  if (LatinExtendedHasCase(c) && !LatinExtendedIsUpper(c)) return c - 1;
  if (c == 0x3C2) return 0x3A3;
  if (InRange(c, 0x3B1, 0x3C9)) return c - 32;
  if (InRange(c, 0x430, 0x44F)) return c - 32;
  return InRange(c, 0x450, 0x45F) ? c - 80 : c;
}

uint32_t ToLower(uint32_t c) {
  if (InRange(c, 'A', 'Z')) return c + 32;
  if (c < 0x80) return c;
  if (InRange(c, 0xC0, 0xDE) && c != 0xD7) return c + 32;
  if (c == 0x178) return 0xFF;
  if (LatinExtendedHasCase(c) && LatinExtendedIsUpper(c)) return c + 1;
  if (InRange(c, 0x391, 0x3A9) && c != 0x3A2) return c + 32;
  if (InRange(c, 0x410, 0x42F)) return c + 32;
  return InRange(c, 0x400, 0x40F) ? c + 80 : c;
}

std::string Upper(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const uint32_t code_point = NextCodePoint(text, &i);
    if (code_point == 0xDF) {
      out += "SS";  // the one Latin-1 letter whose upper case is two letters
    } else {
      AppendCodePoint(ToUpper(code_point), &out);
    }
  }
  return out;
}

std::string Lower(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) AppendCodePoint(ToLower(NextCodePoint(text, &i)), &out);
  return out;
}

absl::string_view Strip(absl::string_view text, StripSide side, const absl::string_view* chars) {
  const auto drop = [chars](uint32_t c) {
    return chars == nullptr ? IsSpace(c) : Contains(*chars, c);
  };
  size_t begin = 0;
  while (side != StripSide::kRight && begin < text.size()) {
    size_t next = begin;
    if (!drop(NextCodePoint(text, &next))) break;
    begin = next;
  }
  size_t end = text.size();
  while (side != StripSide::kLeft && end > begin) {
    size_t last = end - 1;
    while (last > begin && IsContinuation(text[last])) --last;
    size_t position = last;
    if (!drop(NextCodePoint(text, &position))) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

}  // namespace llm::jinja
