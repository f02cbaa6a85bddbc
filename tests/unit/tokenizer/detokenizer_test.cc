// Text deltas over tokens that are single bytes.
#include "src/tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/tokenizer/tiny_specs.h"

namespace llm {
namespace {

class DetokenizerTest : public testing::Test {
 protected:
  DetokenizerTest() : tokenizer_(Tokenizer::Create(TinySpmSpec(true)).value()) {}

  // The delta after each byte of `bytes`, then that of Finish.
  std::vector<std::string> Deltas(const std::string& bytes) {
    Detokenizer detokenizer(tokenizer_.get(), false);
    std::vector<std::string> deltas;
    for (char c : bytes) {
      deltas.emplace_back();
      detokenizer.Append(3 + static_cast<uint8_t>(c), &deltas.back());
    }
    deltas.emplace_back();
    detokenizer.Finish(&deltas.back());
    EXPECT_EQ(detokenizer.num_pending_bytes(), 0u);
    return deltas;
  }

  using V = std::vector<std::string>;
  const std::string kBad = "\xEF\xBF\xBD";
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(DetokenizerTest, HoldsACharacterBackUntilItIsWhole) {
  EXPECT_EQ(Deltas("a\xC3\xA9"), (V{"a", "", "\xC3\xA9", ""}));
  EXPECT_EQ(Deltas("\xF0\x9F\x98\x80"), (V{"", "", "", "\xF0\x9F\x98\x80", ""}));
}

TEST_F(DetokenizerTest, ReplacesEachMaximalInvalidPartOnce) {
  EXPECT_EQ(Deltas("\xFF"), (V{kBad, ""}));
  EXPECT_EQ(Deltas("\xE4\xBD"), (V{"", "", kBad}));
  EXPECT_EQ(Deltas("\xE4\xBDx"), (V{"", "", kBad + "x", ""}));
  EXPECT_EQ(Deltas("\xED\xA0\x80"), (V{"", kBad + kBad, kBad, ""}));
  EXPECT_EQ(Deltas("\xC3\xC3\xA9"), (V{"", kBad, "\xC3\xA9", ""}));
}

TEST_F(DetokenizerTest, ShowsControlTokensOnlyWhenAsked) {
  std::string hidden, shown;
  Detokenizer(tokenizer_.get(), false).Append(2, &hidden);
  Detokenizer(tokenizer_.get(), true).Append(2, &shown);
  EXPECT_EQ(hidden, "");
  EXPECT_EQ(shown, "</s>");
}

TEST_F(DetokenizerTest, CountsWhatItHolds) {
  Detokenizer detokenizer(tokenizer_.get(), false);
  std::string text;
  detokenizer.Append(3 + 0xF0, &text);
  detokenizer.Append(3 + 0x9F, &text);
  EXPECT_EQ(detokenizer.num_pending_bytes(), 2u);
  detokenizer.Finish(&text);
  EXPECT_EQ(text, kBad);
}

}  // namespace
}  // namespace llm
