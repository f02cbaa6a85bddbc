// Splits by name; the expected pieces are those of the published patterns under Oniguruma (HF
// tokenizers).
#include "src/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llm {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Split(const std::string& name, const std::string& text) {
  const auto pre_tokenizer = PreTokenizer::Create(name);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  auto scratch = (*pre_tokenizer)->NewScratch();
  std::vector<absl::string_view> pieces;
  const absl::Status status = (*pre_tokenizer)->Split(text, &*scratch, &pieces);
  EXPECT_TRUE(status.ok()) << status;
  return std::vector<std::string>(pieces.begin(), pieces.end());
}

TEST(PreTokenizerTest, Gpt2KeepsASpaceWithTheWordBehindIt) {
  EXPECT_THAT(Split("gpt-2", "I'm  here 123!"), ElementsAre("I", "'m", " ", " here", " 123", "!"));
}

TEST(PreTokenizerTest, SmolLmSplitsDigitsFirst) {
  EXPECT_THAT(Split("smollm", "a  12"), ElementsAre("a", "  ", "1", "2"));
}

TEST(PreTokenizerTest, LlamaTakesUpToThreeDigitsAndFoldsCase) {
  EXPECT_THAT(Split("llama-bpe", "WE'LL 1234\n\n x"),
              ElementsAre("WE", "'LL", " ", "123", "4", "\n\n", " x"));
}

TEST(PreTokenizerTest, QwenTakesOneDigit) {
  EXPECT_THAT(Split("qwen2", "ab12"), ElementsAre("ab", "1", "2"));
}

TEST(PreTokenizerTest, O200kSplitsWhereCaseRises) {
  EXPECT_THAT(Split("gpt-4o", "fooBar'S"), ElementsAre("foo", "Bar'S"));
}

TEST(PreTokenizerTest, DeepseekSeparatesCjkText) {
  EXPECT_THAT(Split("deepseek-v3", "ab\u4E00\u3042c 1234"),
              ElementsAre("ab", "\u4E00\u3042", "c", " ", "123", "4"));
}

TEST(PreTokenizerTest, WhitespaceIsUnicodesAndNotPcres) {
  EXPECT_THAT(Split("gpt-2", "\u0085\u3000"), ElementsAre("\u0085\u3000"));
  EXPECT_THAT(Split("gpt-2", "\u3000\u180E"), ElementsAre("\u3000", "\u180E"));
}

TEST(PreTokenizerTest, CoversALongRunWithinItsLimits) {
  const std::string spaces(1 << 20, ' ');
  EXPECT_THAT(Split("llama-bpe", spaces), ElementsAre(spaces));
  const std::string capitals(1 << 20, 'A');
  EXPECT_THAT(Split("gpt-4o", capitals), ElementsAre(capitals));
}

}  // namespace
}  // namespace llm
