// Tokens that are written out in a text, found by their bytes.
#include "src/tokenizer/added_token_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>

namespace llm {
namespace {

using testing::ElementsAre;

Vocabulary MakeVocabulary(const std::vector<std::string>& texts) {
  TokenizerSpec spec;
  spec.types.assign(texts.size(), TokenType::kUserDefined);
  const std::string tokens = JoinForTextList(texts);
  auto vocabulary = Vocabulary::Create(spec, TextList(tokens, texts.size()));
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  return *std::move(vocabulary);
}

std::vector<int32_t> Ids(const std::vector<std::string>& texts) {
  std::vector<int32_t> ids(texts.size());
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(AddedTokenMatcherTest, SortsByBytesAndThenById) {
  const std::string nul(1, '\0');
  const std::string head = "<|sixteen bytes|";
  const std::vector<std::string> texts = {head + "b", head, "",         "a" + nul,      "\xFF",
                                          head + "a", "a",  head + "b", "a" + nul + nul};
  EXPECT_THAT(SortedByText(MakeVocabulary(texts), Ids(texts)),
              ElementsAre(2, 1, 5, 0, 7, 6, 3, 8, 4));
}

TEST(AddedTokenMatcherTest, SortsAnyTextsAsTheirBytesCompare) {
  std::mt19937 random(3);
  std::vector<std::string> texts(2000);
  for (std::string& text : texts) {
    text.resize(random() % 24);
    for (char& c : text) c = static_cast<char>("\0a\x7f\xff"[random() % 4]);
  }
  std::vector<int32_t> expected = Ids(texts);
  std::stable_sort(expected.begin(), expected.end(), [&](int32_t a, int32_t b) {
    return texts[static_cast<size_t>(a)] < texts[static_cast<size_t>(b)];
  });
  EXPECT_EQ(SortedByText(MakeVocabulary(texts), Ids(texts)), expected);
}

TEST(AddedTokenMatcherTest, TakesTheLongestAndOfEqualTextsTheLowestId) {
  const std::vector<std::string> texts = {"<a>", "<a>>", "<a>", "", "<b"};
  const Vocabulary vocabulary = MakeVocabulary(texts);
  const AddedTokenMatcher matcher(&vocabulary, SortedByText(vocabulary, Ids(texts)));
  EXPECT_EQ(matcher.MatchPrefix("<a>>>"), 1);
  EXPECT_EQ(matcher.MatchPrefix("<a> "), 0);
  EXPECT_EQ(matcher.MatchPrefix("<b"), 4);
  EXPECT_EQ(matcher.MatchPrefix("<"), -1);
  EXPECT_EQ(matcher.MatchPrefix(""), -1);
  EXPECT_EQ(matcher.Find("<a>>"), 1);
  EXPECT_EQ(matcher.Find("<a>>>"), -1);
}

}  // namespace
}  // namespace llm
