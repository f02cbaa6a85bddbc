// Specs that a hostile or broken file could give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "src/tokenizer/tokenizer.h"
#include "tests/unit/tokenizer/tiny_specs.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const TokenizerSpec& spec, const std::string& message) {
  const auto tokenizer = Tokenizer::Create(spec);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument) << message;
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(message));
}

void ExpectBpeRefused(const std::function<void(TokenizerSpec*)>& damage,
                      const std::string& message) {
  TokenizerSpec spec = TinyBpeSpec();
  damage(&spec);
  ExpectRefused(spec, message);
}

TEST(TokenizerSpecTest, RefusesAnEmptyVocabulary) {
  ExpectRefused(TokenizerSpec(), "vocabulary is empty");
}

TEST(TokenizerSpecTest, RefusesListsOfTheWrongLength) {
  ExpectBpeRefused([](TokenizerSpec* s) { s->types.pop_back(); }, "97 token types for 98 tokens");
  ExpectBpeRefused([](TokenizerSpec* s) { s->scores.resize(3); }, "3 scores for 98 tokens");
  TokenizerSpec spm = TinySpmSpec(true);
  spm.scores.clear();
  ExpectRefused(spm, "0 scores for 259 tokens");
}

TEST(TokenizerSpecTest, RefusesIdsOutsideTheVocabulary) {
  ExpectBpeRefused([](TokenizerSpec* s) { s->bos_id = 98; }, "bos_id is 98");
  ExpectBpeRefused([](TokenizerSpec* s) { s->eos_id = -2; }, "eos_id is -2");
  ExpectBpeRefused([](TokenizerSpec* s) { s->unknown_id = 1 << 30; }, "unknown_id is 1073741824");
}

TEST(TokenizerSpecTest, RefusesToAddAMissingToken) {
  ExpectBpeRefused([](TokenizerSpec* s) { s->bos_id = -1, s->add_bos = true; }, "bos_id");
  ExpectBpeRefused([](TokenizerSpec* s) { s->eos_id = -1, s->add_eos = true; }, "eos_id");
}

TEST(TokenizerSpecTest, RefusesDuplicateTokens) {
  ExpectBpeRefused([](TokenizerSpec* s) { AddToken("a", TokenType::kNormal, 0, s); },
                   "token 98 (\"a\") has the same text as token 64");
  TokenizerSpec spm = TinySpmSpec(true);
  AddToken("<0x41>", TokenType::kByte, 0, &spm);
  ExpectRefused(spm, "tokens 68 and 259 are the same byte token");
}

TEST(TokenizerSpecTest, AcceptsEmptyAndUnusedDuplicates) {
  TokenizerSpec spec = TinyBpeSpec();
  for (int i = 0; i < 2; ++i) AddToken("", TokenType::kNormal, 0, &spec);
  for (int i = 0; i < 2; ++i) AddToken("[PAD]", TokenType::kUnused, 0, &spec);
  for (int i = 0; i < 2; ++i) AddToken("", TokenType::kControl, 0, &spec);
  const auto tokenizer = Tokenizer::Create(spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocab_size(), 104);
}

TEST(TokenizerSpecTest, RefusesTokensThatAreTooLong) {
  ExpectBpeRefused([](TokenizerSpec* s) { s->tokens[3] = std::string(1 << 16, 'x'); },
                   "token 3 (\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\") has 65536 bytes");
}

TEST(TokenizerSpecTest, RefusesUnknownTypesAndScoresThatAreNoNumbers) {
  ExpectBpeRefused([](TokenizerSpec* s) { s->types[5] = static_cast<TokenType>(9); }, "has type 9");
  TokenizerSpec spm = TinySpmSpec(true);
  spm.scores[7] = std::nanf("");
  ExpectRefused(spm, "the score of token 7");
}

TEST(TokenizerSpecTest, RefusesMergesThatNameNoTokens) {
  const auto merge = [](std::string text) {
    return [text](TokenizerSpec* s) { s->merges.push_back(text); };
  };
  ExpectBpeRefused(merge("xx a"), "merge 0 (\"xx a\") names no token on its left");
  ExpectBpeRefused(merge("a xx"), "names no token on its right");
  ExpectBpeRefused(merge("a b"), "gives no token");
  ExpectBpeRefused(merge("<s> a"), "names no token on its left");
  ExpectBpeRefused(merge("ab"), "not two texts");
  ExpectBpeRefused(merge("a b c"), "not two texts");
  ExpectBpeRefused(merge(" a"), "not two texts");
  ExpectBpeRefused(merge("a "), "not two texts");
  ExpectBpeRefused(merge("\xE4\xB8\x80 a"), "outside the byte alphabet");
  ExpectBpeRefused(merge("\xFF a"), "outside the byte alphabet");
}

TEST(TokenizerSpecTest, RefusesByteTokensOfAnotherForm) {
  TokenizerSpec spm = TinySpmSpec(true);
  AddToken("<0xZZ>", TokenType::kByte, 0, &spm);
  ExpectRefused(spm, "token 259 (\"<0xZZ>\") is a byte token");
}

TEST(TokenizerSpecTest, RefusesAnSpmVocabularyThatCannotEncodeEveryText) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kSpm;
  AddPiece("a", 0, &spec);
  ExpectRefused(spec, "neither 256 byte tokens nor an unknown token");
}

TEST(TokenizerSpecTest, TextsThatLieElsewhereGiveTheSameTokenizer) {
  TokenizerSpec spec = TinyBpeSpec();
  AddMerge("a", "b", &spec);
  AddMerge("ab", "c", &spec);
  const auto own = Tokenizer::Create(spec);
  const size_t num_tokens = spec.tokens.size();
  const std::string tokens = JoinForTextList(std::move(spec.tokens));
  const std::string merges = JoinForTextList(std::move(spec.merges));
  TokenizerTexts texts = {.tokens = TextList(tokens, num_tokens), .merges = TextList(merges, 2)};
  const auto lent = Tokenizer::Create(spec, texts);
  ASSERT_TRUE(own.ok() && lent.ok()) << own.status() << lent.status();
  EXPECT_EQ((*own)->vocab_size(), (*lent)->vocab_size());
  EXPECT_EQ((*own)->Encode("abc<tool>ab", {}).value(), (*lent)->Encode("abc<tool>ab", {}).value());
  const std::string bad = JoinForTextList(std::vector<std::string>{"a b", "b"});
  texts.merges = TextList(bad, 2);
  EXPECT_THAT(std::string(Tokenizer::Create(spec, texts).status().message()), HasSubstr("merge 1"));
  texts.tokens = TextList();
  EXPECT_THAT(std::string(Tokenizer::Create(spec, texts).status().message()),
              HasSubstr("the vocabulary is empty"));
}

TEST(TokenizerSpecTest, NamesAnUnknownPreTokenizer) {
  TokenizerSpec spec = TinyBpeSpec();
  spec.pre_tokenizer = "chameleon";
  const auto status = Tokenizer::Create(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"chameleon\""));
  spec.pre_tokenizer = "";
  EXPECT_EQ(Tokenizer::Create(spec).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace llm
