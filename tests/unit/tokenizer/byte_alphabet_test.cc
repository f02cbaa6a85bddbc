// The alphabet against its definition, in both directions.
#include "src/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

// Printable bytes stand for themselves, the others are numbered from U+0100 on.
std::string CharacterOf(unsigned byte) {
  char32_t moved = 0x100;
  for (unsigned b = 0;; ++b) {
    const bool itself = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    if (b == byte) {
      std::string text;
      AppendUtf8(itself ? byte : moved, &text);
      return text;
    }
    if (!itself) ++moved;
  }
}

std::optional<std::string> Decode(const std::string& text) {
  std::string bytes(text.size(), 'x');
  const std::optional<size_t> size = DecodeByteAlphabet(text, bytes.data());
  if (!size.has_value()) return std::nullopt;
  bytes.resize(*size);
  return bytes;
}

TEST(ByteAlphabetTest, DecodesEveryByte) {
  std::string text, expected;
  for (unsigned byte = 0; byte < 256; ++byte) {
    text += CharacterOf(byte);
    expected += static_cast<char>(byte);
  }
  EXPECT_EQ(Decode(text), expected);
  EXPECT_EQ(Decode(""), "");
}

TEST(ByteAlphabetTest, RefusesOtherCharactersAndBytesThatAreNoCharacters) {
  std::string last;
  AppendUtf8(0x144, &last);  // one beyond the alphabet
  for (const std::string& bad :
       {std::string(" "), std::string("\n"), std::string(1, '\0'), std::string("\x7F"),
        std::string("\xC2\xAD"), std::string("\xC2\x80"), last, std::string("\xE2\x96\x81"),
        std::string("\xC4"), std::string("\xC4x"), std::string("\xC1\xA1"), std::string("\xA1"),
        std::string("\xFF"), std::string("\xF0\x9F\x98\x80")}) {
    EXPECT_EQ(Decode("ab" + bad), std::nullopt) << bad;
    EXPECT_EQ(Decode(bad + "ab"), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace llm
