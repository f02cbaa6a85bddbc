// UTF-8 parts at the borders of Unicode's table 3-7.
#include "src/tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

void ExpectPart(absl::string_view text, Utf8Kind kind, int length) {
  const Utf8Part part = NextUtf8Part(text);
  EXPECT_EQ(part.kind, kind) << text;
  EXPECT_EQ(part.length, length) << text;
}

TEST(Utf8Test, ReadsTheFirstAndTheLastCharacterOfEachLength) {
  for (char32_t c :
       {0x00u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    AppendUtf8(c, &text);
    ExpectPart(text, Utf8Kind::kValid, static_cast<int>(text.size()));
    EXPECT_EQ(NextUtf8Part(text).code_point, c);
  }
}

TEST(Utf8Test, RefusesOverlongSurrogateAndTooLargeCharacters) {
  ExpectPart("\xC0\x80", Utf8Kind::kInvalid, 1);
  ExpectPart("\xE0\x9F\x80", Utf8Kind::kInvalid, 1);
  ExpectPart("\xED\xA0\x80", Utf8Kind::kInvalid, 1);
  ExpectPart("\xF0\x8F\x80\x80", Utf8Kind::kInvalid, 1);
  ExpectPart("\xF4\x90\x80\x80", Utf8Kind::kInvalid, 1);
  ExpectPart("\xF5", Utf8Kind::kInvalid, 1);
  ExpectPart("\x80", Utf8Kind::kInvalid, 1);
}

TEST(Utf8Test, TellsACutCharacterFromAWrongOne) {
  ExpectPart("\xF0\x9F\x98", Utf8Kind::kIncomplete, 3);
  ExpectPart("\xF0\x9F\x98x", Utf8Kind::kInvalid, 3);
  ExpectPart("", Utf8Kind::kIncomplete, 0);
  EXPECT_EQ(ValidUtf8Prefix("ab\xC3\xA9\xC3"), 4u);
}

}  // namespace
}  // namespace llm
