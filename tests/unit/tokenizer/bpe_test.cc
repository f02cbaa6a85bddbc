// Byte-level BPE on hand-made vocabularies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/tokenizer/tokenizer.h"
#include "tests/unit/tokenizer/tiny_specs.h"

namespace llm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};
constexpr EncodeOptions kParse = {.add_special = false, .parse_special = true};
int32_t Char(char c) { return c == ' ' ? 94 : c - '!'; }

std::unique_ptr<Tokenizer> Make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::Create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return std::move(tokenizer).value();
}

TEST(BpeTest, MergesTheLowestRankFirstAndTheLeftmostOfEqualOnes) {
  TokenizerSpec spec = TinyBpeSpec();
  const int32_t bc = AddMerge("b", "c", &spec);
  const int32_t ab = AddMerge("a", "b", &spec);
  const int32_t aa = AddMerge("a", "a", &spec);
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(*tokenizer->Encode("abc", kPlain), ElementsAre(Char('a'), bc));
  EXPECT_THAT(*tokenizer->Encode("abd", kPlain), ElementsAre(ab, Char('d')));
  EXPECT_THAT(*tokenizer->Encode("aaa", kPlain), ElementsAre(aa, Char('a')));
}

TEST(BpeTest, BuildsLongTokensFromMergedOnes) {
  TokenizerSpec spec = TinyBpeSpec();
  AddMerge("a", "b", &spec);
  AddMerge("c", "d", &spec);
  const int32_t abcd = AddMerge("ab", "cd", &spec);
  EXPECT_THAT(*Make(std::move(spec))->Encode("abcdabcd", kPlain), ElementsAre(abcd, abcd));
}

TEST(BpeTest, NeverMergesAcrossPieces) {
  TokenizerSpec spec = TinyBpeSpec();
  AddMerge("a", "\xC4\xA0", &spec);
  const int32_t space_b = AddMerge("\xC4\xA0", "b", &spec);
  EXPECT_THAT(*Make(std::move(spec))->Encode("a b", kPlain), ElementsAre(Char('a'), space_b));
}

TEST(BpeTest, SmolLmTakesEachDigitAlone) {
  TokenizerSpec spec = TinyBpeSpec();
  const int32_t pair = AddMerge("1", "2", &spec);
  TokenizerSpec smollm = spec;
  smollm.pre_tokenizer = "smollm";
  EXPECT_THAT(*Make(std::move(spec))->Encode("12", kPlain), ElementsAre(pair));
  EXPECT_THAT(*Make(std::move(smollm))->Encode("12", kPlain), ElementsAre(Char('1'), Char('2')));
}

TEST(BpeTest, LlamaTakesAPieceThatIsATokenWhole) {
  TokenizerSpec spec = TinyBpeSpec();
  AddMerge("a", "b", &spec);
  AddToken("abc", TokenType::kNormal, 0, &spec);  // no merge leads here
  const int32_t abc = static_cast<int32_t>(spec.tokens.size()) - 1;
  TokenizerSpec llama = spec;
  llama.pre_tokenizer = "llama-bpe";
  EXPECT_THAT(*Make(std::move(llama))->Encode("abc", kPlain), ElementsAre(abc));
  EXPECT_THAT(*Make(std::move(spec))->Encode("abc", kPlain), ElementsAre(abc - 1, Char('c')));
}

TEST(BpeTest, ParsesControlTokensOnlyWhenAskedAndUserDefinedOnesAlways) {
  const auto tokenizer = Make(TinyBpeSpec());
  EXPECT_THAT(*tokenizer->Encode("a<s>b", kParse), ElementsAre(Char('a'), 95, Char('b')));
  EXPECT_THAT(*tokenizer->Encode("<s>", kPlain), ElementsAre(Char('<'), Char('s'), Char('>')));
  EXPECT_THAT(*tokenizer->Encode("x<tool></s>", kParse), ElementsAre(Char('x'), 97, 96));
  EXPECT_THAT(*tokenizer->Encode("x<tool>", kPlain), ElementsAre(Char('x'), 97));
}

TEST(BpeTest, ControlTokensInLiteralPartsStayText) {
  const auto tokenizer = Make(TinyBpeSpec());
  const auto encode = [&](absl::string_view text, std::vector<TextSpan> literal) {
    EncodeOptions options = kParse;
    options.literal = literal;
    return *tokenizer->Encode(text, options);
  };
  const auto text = ElementsAre(Char('<'), Char('s'), Char('>'));
  EXPECT_THAT(encode("<s>", {{0, 3}}), text);
  EXPECT_THAT(encode("<s>", {{0, 1}}), text) << "in part is enough";
  EXPECT_THAT(encode("<s>", {{1, 2}}), text);
  EXPECT_THAT(encode("<s>", {{2, 3}}), text);
  EXPECT_THAT(encode("<s><s>", {{0, 3}}), ElementsAre(Char('<'), Char('s'), Char('>'), 95));
  EXPECT_THAT(encode("<s>a</s>", {{3, 4}}), ElementsAre(95, Char('a'), 96));
  EXPECT_THAT(encode("<tool></s>", {{0, 6}}), ElementsAre(97, 96)) << "that is no control token";
}

TEST(BpeTest, ALiteralPartDoesNotHideAShorterTokenBeforeIt) {
  TokenizerSpec spec = TinyBpeSpec();
  AddToken("<s>><", TokenType::kControl, 0, &spec);
  EncodeOptions options = kParse;
  const std::vector<TextSpan> literal = {{3, 5}};
  options.literal = literal;
  EXPECT_THAT(*Make(std::move(spec))->Encode("<s>><", options),
              ElementsAre(95, Char('>'), Char('<')));
}

TEST(BpeTest, TakesTheLongestAddedTokenAtAPosition) {
  TokenizerSpec spec = TinyBpeSpec();
  AddToken("<s>><", TokenType::kControl, 0, &spec);
  EXPECT_THAT(*Make(std::move(spec))->Encode("<s>><s>>", kParse),
              ElementsAre(98, Char('s'), Char('>'), Char('>')));
}

TEST(BpeTest, AddsBosAndEosOnlyAsTheSpecAndTheOptionsAsk) {
  TokenizerSpec spec = TinyBpeSpec();
  EXPECT_THAT(*Make(spec)->Encode("a", {}), ElementsAre(Char('a')));
  spec.add_bos = spec.add_eos = true;
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(*tokenizer->Encode("a", {}), ElementsAre(95, Char('a'), 96));
  EXPECT_THAT(*tokenizer->Encode("", {}), ElementsAre(95, 96));
  EXPECT_THAT(*tokenizer->Encode("a", kPlain), ElementsAre(Char('a')));
}

TEST(BpeTest, ReplacesWhatHasNoByteTokens) {
  TokenizerSpec spec = TinyBpeSpec();
  EXPECT_THAT(*Make(spec)->Encode("\xC3\xA9", kPlain), IsEmpty());
  spec.unknown_id = 97;
  EXPECT_THAT(*Make(spec)->Encode("a\xC3\xA9", kPlain), ElementsAre(Char('a'), 97));
  // The three bytes of U+FFFD, EF BF BD, in the byte alphabet.
  for (const char* text : {"\xC3\xAF", "\xC2\xBF", "\xC2\xBD"}) {
    AddToken(text, TokenType::kNormal, 0, &spec);
  }
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(*tokenizer->Encode("\xC3\xA9", kPlain), ElementsAre(98, 99, 100));
  EXPECT_THAT(*tokenizer->Encode("\xFF", kPlain), ElementsAre(98, 99, 100));
  EXPECT_THAT(*tokenizer->Encode("\xBD", kPlain), ElementsAre(98, 99, 100));
}

TEST(BpeTest, HidesControlTokensUnlessAsked) {
  const auto tokenizer = Make(TinyBpeSpec());
  EXPECT_EQ(tokenizer->TokenBytes(95, false), "");
  EXPECT_EQ(tokenizer->TokenBytes(95, true), "<s>");
  EXPECT_EQ(tokenizer->TokenBytes(97, false), "<tool>");
  EXPECT_EQ(tokenizer->TokenBytes(94, false), " ");
  EXPECT_TRUE(tokenizer->IsControl(95));
  EXPECT_FALSE(tokenizer->IsControl(97));
  EXPECT_EQ(*tokenizer->Decode({95, 1, 94, 97}, false), "\" <tool>");
  EXPECT_EQ(tokenizer->Decode({98}, false).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tokenizer->Decode({-1}, false).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BpeTest, FindsTokensByTheirText) {
  const auto tokenizer = Make(TinyBpeSpec());
  EXPECT_EQ(tokenizer->FindToken("</s>"), 96);
  EXPECT_EQ(tokenizer->FindToken(" "), 94);
  EXPECT_EQ(tokenizer->FindToken("<tool>"), 97);
  EXPECT_EQ(tokenizer->FindToken("<to"), -1);
  EXPECT_EQ(tokenizer->FindToken(""), -1);
}

TEST(BpeTest, EncodesAMegabyteWithoutASpace) {
  TokenizerSpec spec = TinyBpeSpec();
  AddMerge("a", "a", &spec);
  AddMerge("aa", "aa", &spec);
  const int32_t a8 = AddMerge("aaaa", "aaaa", &spec);
  const auto ids = Make(std::move(spec))->Encode(std::string(1 << 20, 'a'), kPlain);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, std::vector<int32_t>((1 << 20) / 8, a8));
}

}  // namespace
}  // namespace llm
