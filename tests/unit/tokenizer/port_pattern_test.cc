#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/tokenizer/pre_tokenizer.h"
#include "src/tokenizer/pre_tokenizer_patterns.h"

namespace llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PortPatternTest, KeepsWhatBothEnginesReadAlike) {
  for (const char* pattern :
       {R"((?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S))",
        R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)", R"(\x{4E00}|[\t\n]|a{2,})"}) {
    const auto ported = PortPattern(pattern);
    ASSERT_TRUE(ported.ok()) << ported.status();
    EXPECT_EQ(*ported, pattern);
  }
}

TEST(PortPatternTest, SpellsOutWhatTheyReadDifferently) {
  EXPECT_EQ(*PortPattern(R"([\u4e00-\u9fa5]\d)"), R"([\x{4e00}-\x{9fa5}]\p{Nd})");
  EXPECT_EQ(QuotePattern("a.b "), R"(a\.b\ )");
}

TEST(PortPatternTest, NamesWhatItDoesNotPort) {
  for (const char* pattern :
       {R"(\w+)", R"(\bword)", "(?<name>a)", "(?P<n>a)", "(*FAIL)", "[[:alpha:]]", "[a&&b]", "[]a]",
        "^a", "a{1,3}+", "a{,3}", R"(\1)", R"(\)"}) {
    const auto ported = PortPattern(pattern);
    EXPECT_EQ(ported.status().code(), absl::StatusCode::kUnimplemented) << pattern;
    EXPECT_THAT(std::string(ported.status().message()), HasSubstr("is not supported")) << pattern;
  }
}

TEST(SplitRuleTest, CutsByItsPatternsOneAfterTheOther) {
  const auto splitter = PreTokenizer::Create(SplitRule{.patterns = {R"(\p{N})", "[a-z]+"}});
  ASSERT_TRUE(splitter.ok()) << splitter.status();
  auto scratch = (*splitter)->NewScratch();
  ASSERT_TRUE(scratch.ok());
  std::vector<absl::string_view> pieces;
  ASSERT_TRUE((*splitter)->Split("ab12 c", &*scratch, &pieces).ok());
  EXPECT_THAT(pieces, ElementsAre("ab", "1", "2", " ", "c"));
}

TEST(SplitRuleTest, StopsAPatternThatRunsInCircles) {
  const auto splitter = PreTokenizer::Create(SplitRule{.patterns = {"(?:a+)+[bc]"}});
  ASSERT_TRUE(splitter.ok()) << splitter.status();
  auto scratch = (*splitter)->NewScratch();
  ASSERT_TRUE(scratch.ok());
  std::vector<absl::string_view> pieces;
  EXPECT_EQ((*splitter)->Split(std::string(64, 'a'), &*scratch, &pieces).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(SplitRuleTest, RefusesPatternsThatDoNotCompileOrAreTooLong) {
  for (const std::string& pattern :
       {std::string("(a"), std::string(300, '(') + std::string(300, ')'), std::string(9000, 'a')}) {
    EXPECT_EQ(PreTokenizer::Create(SplitRule{.patterns = {pattern}}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace llm
