// 188 printable Latin-1 bytes stand for themselves; the other 68 take U+0100 and on, in byte order.
#include "src/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

constexpr bool StandsForItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr unsigned kNumMoved = 68;
constexpr std::array<uint8_t, kNumMoved> MovedBytes() {
  std::array<uint8_t, kNumMoved> moved{};
  size_t count = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!StandsForItself(byte)) moved[count++] = static_cast<uint8_t>(byte);
  }
  return moved;
}
constexpr std::array<uint8_t, kNumMoved> kMovedBytes = MovedBytes();

}  // namespace

bool DecodeByteAlphabet(absl::string_view text, std::string* bytes) {
  const size_t old_size = bytes->size();
  while (!text.empty()) {
    const Utf8Part part = NextUtf8Part(text);
    const char32_t c = part.code_point;
    if (c < 0x100 && StandsForItself(c)) {
      bytes->push_back(static_cast<char>(c));
    } else if (c >= 0x100 && c < 0x100 + kNumMoved) {
      bytes->push_back(static_cast<char>(kMovedBytes[c - 0x100]));
    } else {
      bytes->resize(old_size);
      return false;
    }
    text.remove_prefix(part.length);
  }
  return true;
}

}  // namespace llm
