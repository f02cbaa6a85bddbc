// 188 printable Latin-1 bytes stand for themselves; the other 68 take U+0100 and on, in byte order.
#include "src/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

namespace llm {
namespace {

constexpr bool StandsForItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr unsigned kNumMoved = 68;
constexpr unsigned kNumCharacters = 0x100 + kNumMoved;
constexpr int16_t kNoByte = -1;

// By code point. All of them have one or two bytes in UTF-8.
constexpr std::array<int16_t, kNumCharacters> ByteOfCharacter() {
  std::array<int16_t, kNumCharacters> bytes{};
  unsigned next_moved = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) bytes[byte] = kNoByte;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes[StandsForItself(byte) ? byte : next_moved++] = static_cast<int16_t>(byte);
  }
  return bytes;
}
constexpr std::array<int16_t, kNumCharacters> kByteOfCharacter = ByteOfCharacter();

}  // namespace

std::optional<size_t> DecodeByteAlphabet(absl::string_view text, char* bytes) {
  char* to = bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    unsigned character = static_cast<uint8_t>(text[at]);
    if (character >= 0x80) {
      const unsigned second = at + 1 < text.size() ? static_cast<uint8_t>(text[at + 1]) : 0;
      const bool two_bytes = (character & 0xE0) == 0xC0 && (second & 0xC0) == 0x80;
      character = (character & 0x1F) << 6 | (second & 0x3F);
      if (!two_bytes || character < 0x80 || character >= kNumCharacters) return std::nullopt;
      ++at;
    }
    if (kByteOfCharacter[character] == kNoByte) return std::nullopt;
    *to++ = static_cast<char>(kByteOfCharacter[character]);
  }
  return static_cast<size_t>(to - bytes);
}

}  // namespace llm
