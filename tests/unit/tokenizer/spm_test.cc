// SentencePiece BPE on hand-made vocabularies.
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
constexpr int32_t kByte0 = 3;  // with byte tokens

std::unique_ptr<Tokenizer> Make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::Create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return std::move(tokenizer).value();
}

TEST(SpmTest, JoinsThePairOfTheBestScoreFirst) {
  TokenizerSpec spec = TinySpmSpec(true);
  const int32_t a = AddPiece("a", -1, &spec);
  AddPiece("b", -2, &spec);
  const int32_t c = AddPiece("c", -3, &spec);
  const int32_t ab = AddPiece("ab", -5, &spec);
  const int32_t bc = AddPiece("bc", -4, &spec);
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(*tokenizer->Encode("abc", kPlain), ElementsAre(a, bc));
  EXPECT_THAT(*tokenizer->Encode("abac", kPlain), ElementsAre(ab, a, c));
}

TEST(SpmTest, JoinsTheLeftmostOfEqualScores) {
  TokenizerSpec spec = TinySpmSpec(true);
  const int32_t a = AddPiece("a", -1, &spec);
  const int32_t aa = AddPiece("aa", -2, &spec);
  EXPECT_THAT(*Make(std::move(spec))->Encode("aaa", kPlain), ElementsAre(aa, a));
}

TEST(SpmTest, FallsBackToBytes) {
  TokenizerSpec spec = TinySpmSpec(true);
  const int32_t a = AddPiece("a", -1, &spec);
  const auto tokenizer = Make(std::move(spec));
  const auto ids = tokenizer->Encode("a\xC3\xA9", kPlain);
  EXPECT_THAT(*ids, ElementsAre(a, kByte0 + 0xC3, kByte0 + 0xA9));
  EXPECT_EQ(*tokenizer->Decode(*ids, false), "a\xC3\xA9");
  EXPECT_THAT(*tokenizer->Encode("\xFF", kPlain),
              ElementsAre(kByte0 + 0xEF, kByte0 + 0xBF, kByte0 + 0xBD))
      << "U+FFFD";
}

TEST(SpmTest, GivesOneUnknownTokenForARunWithoutByteTokens) {
  TokenizerSpec spec = TinySpmSpec(false);
  const int32_t a = AddPiece("a", -1, &spec);
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(*tokenizer->Encode("axya\xFFz", kPlain), ElementsAre(a, 0, a, 0));
  EXPECT_EQ(tokenizer->TokenBytes(0, false), "");
}

TEST(SpmTest, PutsASpaceInFrontAndTakesItAwayAgain) {
  TokenizerSpec spec = TinySpmSpec(true);
  const int32_t a = AddPiece("a", -1, &spec);
  const int32_t space = AddPiece("\xE2\x96\x81", -2, &spec);
  const int32_t space_a = AddPiece(
      "\xE2\x96\x81"
      "a",
      -3, &spec);
  EXPECT_THAT(*Make(spec)->Encode("a", kPlain), ElementsAre(a));
  spec.add_space_prefix = true;
  spec.add_bos = true;
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(*tokenizer->Encode("a a", {}), ElementsAre(1, space_a, space_a));
  EXPECT_THAT(*tokenizer->Encode(" a", kPlain), ElementsAre(space, space_a));
  EXPECT_THAT(*tokenizer->Encode("", kPlain), IsEmpty());
  EXPECT_EQ(*tokenizer->Decode({1, space_a, space_a}, false), "a a");
  EXPECT_EQ(*tokenizer->Decode({1, space_a}, true), "<s>a");
  EXPECT_EQ(tokenizer->TokenBytes(space_a, false), " a");
}

TEST(SpmTest, RemovesExtraSpacesWhenTheModelAsks) {
  TokenizerSpec spec = TinySpmSpec(true);
  const int32_t a = AddPiece("a", -1, &spec);
  const int32_t space = AddPiece("\xE2\x96\x81", -2, &spec);
  spec.remove_extra_whitespaces = true;
  EXPECT_THAT(*Make(std::move(spec))->Encode("  a   a ", kPlain), ElementsAre(a, space, a));
}

TEST(SpmTest, MatchesUserDefinedTokensBeforeAnythingElse) {
  TokenizerSpec spec = TinySpmSpec(true);
  const int32_t a = AddPiece("a", -1, &spec);
  const int32_t b = AddPiece("b", -1, &spec);
  AddPiece("ab", -2, &spec);
  AddToken("bb", TokenType::kUserDefined, -9, &spec);
  const int32_t bb = b + 2;
  EXPECT_THAT(*Make(std::move(spec))->Encode("abbb", kPlain), ElementsAre(a, bb, b));
}

TEST(SpmTest, ParsesControlTokensOnlyWhenAsked) {
  TokenizerSpec spec = TinySpmSpec(true);
  const int32_t a = AddPiece("a", -1, &spec);
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(*tokenizer->Encode("a</s>a", kParse), ElementsAre(a, 2, a));
  EXPECT_THAT(*tokenizer->Encode("<s>", kPlain),
              ElementsAre(kByte0 + '<', kByte0 + 's', kByte0 + '>'));
}

TEST(SpmTest, TakesAnUnusedPieceApartAsItWasMade) {
  TokenizerSpec spec = TinySpmSpec(true);
  const int32_t a = AddPiece("a", -1, &spec);
  const int32_t b = AddPiece("b", -1, &spec);
  AddPiece("c", -1, &spec);
  AddToken("ab", TokenType::kUnused, -2, &spec);
  const int32_t abc = AddPiece("abc", -3, &spec);
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(*tokenizer->Encode("abc", kPlain), ElementsAre(abc));
  EXPECT_THAT(*tokenizer->Encode("ab", kPlain), ElementsAre(a, b));
}

TEST(SpmTest, EncodesAMegabyteWithoutASpace) {
  TokenizerSpec spec = TinySpmSpec(true);
  AddPiece("a", -1, &spec);
  AddPiece("aa", -2, &spec);
  const int32_t a4 = AddPiece("aaaa", -3, &spec);
  const auto ids = Make(std::move(spec))->Encode(std::string(1 << 20, 'a'), kPlain);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, std::vector<int32_t>((1 << 20) / 4, a4));
}

}  // namespace
}  // namespace llm
