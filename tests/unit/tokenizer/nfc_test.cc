// Normalization Form C on the cases of UAX #15; expected texts are those of Python's unicodedata.
#include "src/tokenizer/nfc.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

TEST(NfcTest, ComposesALetterWithItsMark) {
  EXPECT_EQ(NormalizeToNfc("cafe\u0301"), "caf\u00E9");
  EXPECT_EQ(NormalizeToNfc("\u1EB9\u0301"), "\u1EB9\u0301");
}

TEST(NfcTest, OrdersMarksBeforeItComposes) {
  EXPECT_EQ(NormalizeToNfc("s\u0307\u0323"), "\u1E69");
  EXPECT_EQ(NormalizeToNfc("\u1E9B\u0323"), "\u1E9B\u0323");
}

TEST(NfcTest, ComposesHangulSyllables) {
  EXPECT_EQ(NormalizeToNfc("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(NormalizeToNfc("\uAC00\u11A8"), "\uAC01");
  EXPECT_EQ(NormalizeToNfc("\uAC01\u11A8"), "\uAC01\u11A8");
}

TEST(NfcTest, ReplacesSingletonsAndKeepsExclusionsApart) {
  EXPECT_EQ(NormalizeToNfc("\u212B"), "\u00C5");
  EXPECT_EQ(NormalizeToNfc("\u0958"), "\u0915\u093C");
}

TEST(NfcTest, NeedsNothingBelowTheFirstMark) {
  EXPECT_FALSE(MayNeedNfc("plain \u00E9 \u02FF"));
  EXPECT_TRUE(MayNeedNfc("e\u0301"));
}

}  // namespace
}  // namespace llm
