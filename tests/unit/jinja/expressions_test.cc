// Expressions mean what they mean in Jinja; every expected text is real Jinja's (3.1.6, set up as
// transformers does).
#include "gtest/gtest.h"
#include "tests/unit/jinja/render.h"

namespace llm {
namespace {

TEST(JinjaExpressionTest, FollowsPythonPrecedence) {
  EXPECT_EQ(Rendered("{{ 1 + 2 * 3 }}"), "7");
  EXPECT_EQ(Rendered("{{ 2 ** 3 ** 2 }}"), "64");
  EXPECT_EQ(Rendered("{{ -2 ** 2 }}"), "4");
  EXPECT_EQ(Rendered("{{ 1 ~ 2 * 3 }}"), "16");
  EXPECT_EQ(Rendered("{{ 7 // 2 * 2 }}"), "6");
  EXPECT_EQ(Rendered("{{ not 1 == 2 }}"), "True");
  EXPECT_EQ(Rendered("{{ 1 or 0 and 0 }}"), "1");
  EXPECT_EQ(Rendered("{{ 10 - 2 - 3 }}"), "5");
  EXPECT_EQ(Rendered("{{ -3|abs }}"), "3");
  EXPECT_EQ(Rendered("{{ 'a' ~ 'b' if false else 'c' }}"), "c");
}

TEST(JinjaExpressionTest, DividesTowardsMinusInfinity) {
  EXPECT_EQ(Rendered("{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 6 / 2 }}"),
            "-4 2 -2 3.5 3.0");
  EXPECT_EQ(Rendered("{{ -7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }}"), "-4.0 0.5 -0.5");
  EXPECT_EQ(Rendered("{{ 2 ** -1 }} {{ 2.0 ** 3 }}"), "0.5 8.0");
}

TEST(JinjaExpressionTest, ChainsComparisons) {
  EXPECT_EQ(Rendered(R"({{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 }} {{ 1 == 1.0 == true }})"),
            "True False True True");
}

TEST(JinjaExpressionTest, ReturnsTheDecidingOperandOfAndAndOr) {
  EXPECT_EQ(Rendered(R"({{ 0 or 'x' }} {{ '' and 'x' }}| {{ 'a' and 'b' }} {{ none or [] or 0 }})"),
            "x | b 0");
}

TEST(JinjaExpressionTest, ComparesListsAndStringsInOrder) {
  EXPECT_EQ(
      Rendered(
          R"({{ [1, 2] < [1, 3] }} {{ 'abc' < 'abd' }} {{ (1, 2) == (1, 2) }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }})"),
      "True True True False True");
}

TEST(JinjaExpressionTest, TellsMembership) {
  EXPECT_EQ(
      Rendered(
          R"({{ 'ell' in s }} {{ 2 in l }} {{ 'b' in d }} {{ 'c' not in d }} {{ 1 in missing }})"),
      "True True True True False");
}

TEST(JinjaExpressionTest, SlicesWithNegativeSteps) {
  EXPECT_EQ(
      Rendered(
          R"({{ s[::-1] }} {{ s[1:3] }} {{ s[-3:] }} {{ s[:-1] }} {{ l[::-2] }} {{ l[5:] }} {{ s[3:1:-1] }} {{ u[1:4] }} {{ u[-2:] }} {{ (1,2,3)[1:] }})"),
      "olleH el llo Hell [2, 3] [] ll üri 東京 (2, 3)");
}

TEST(JinjaExpressionTest, IndexesCodePoints) {
  EXPECT_EQ(
      Rendered(
          R"({{ u[1] }} {{ u[-1] }} {{ u|length }} {{ l[-1] }} {{ d['b'] }} {{ d.a }} {{ l.0 }} {{ l[9] is defined }})"),
      "ü 京 11 2 1 2 3 False");
}

TEST(JinjaExpressionTest, JoinsNeighbouringStringLiterals) {
  EXPECT_EQ(Rendered(R"({{ 'a' 'b' "c" }})"), "abc");
}

TEST(JinjaExpressionTest, ResolvesEscapesInStrings) {
  EXPECT_EQ(Rendered(R"({{ 'a\n\t\\\'\"\x41\u00e9\U0001F600\101\q' }})"),
            R"(a
	\'"Aé😀A\q)");
}

TEST(JinjaExpressionTest, ReadsNumbersInEveryBase) {
  EXPECT_EQ(
      Rendered(
          R"({{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 2.50 }})"),
      "31 5 15 1000 1000.0 1.5e-07 2.5");
}

TEST(JinjaExpressionTest, PrintsValuesAsPythonDoes) {
  EXPECT_EQ(Rendered(R"({{ [1, 'a', none, true, 1.0, {'k': (1,)}, "it's", '"\'\n'] }})"),
            R"([1, 'a', None, True, 1.0, {'k': (1,)}, "it's", '"\'\n'])");
  EXPECT_EQ(
      Rendered(
          R"({{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1e100 }} {{ 0.1 + 0.2 }} {{ -0.0 }} {{ 123456789.125 }})"),
      R"(1e+16 1000000000000000.0 0.0001 1e-05 1e+100 0.30000000000000004 -0.0 123456789.125)");
  EXPECT_EQ(
      Rendered(
          R"({{ () }} {{ {} }} {{ [] }} {{ (1, 2) }} {{ d.items() }} {{ d.keys() }} {{ d.values() }} {{ range(3) }} {{ range(1, 7, 2)|list }})"),
      R"(() {} [] (1, 2) dict_items([('b', 1), ('a', 2)]) dict_keys(['b', 'a']) dict_values([1, 2]) range(0, 3) [1, 3, 5])");
}

TEST(JinjaExpressionTest, RepeatsStringsAndLists) {
  EXPECT_EQ(
      Rendered(R"({{ 'ab' * 3 }} {{ 2 * [1] }} {{ 'a' * -1 }}|{{ [1] + [2] }} {{ (1,) + (2,) }})"),
      "ababab [1, 1] |[1, 2] (1, 2)");
}

TEST(JinjaExpressionTest, UsesConditionalExpressionsWithoutElse) {
  EXPECT_EQ(Rendered("{{ 'x' if false }}|{{ 'a' if t else 'b' if n else 'c' }}"), "|a");
}

TEST(JinjaExpressionTest, CallsWithUnpackedArguments) {
  EXPECT_EQ(
      Rendered(R"({{ range(*[1, 4])|list }} {{ dict(b=2, **{'a': 1}) }} {{ dict([('x', 1)]) }})"),
      "[1, 2, 3] {'b': 2, 'a': 1} {'x': 1}");
}

TEST(JinjaExpressionTest, PrefersItemsForSubscriptsAndMethodsForAttributes) {
  EXPECT_EQ(
      Rendered(R"({{ {'items': 5}['items'] }} {{ {'items': 5}.items() | list }} {{ {'x': 5}.x }})"),
      "5 [('items', 5)] 5");
}

TEST(JinjaExpressionTest, ClosesBracesInsideOfExpressions) {
  EXPECT_EQ(Rendered("{{ {'a': {'b': 1}}['a']['b'] }}"), "1");
  EXPECT_EQ(Rendered("{{ '}}' }}"), "}}");
}

TEST(JinjaExpressionTest, MakesTuplesOfCommas) {
  EXPECT_EQ(Rendered("{{ 1, 2 }}"), "(1, 2)");
  EXPECT_EQ(Rendered("{% set a, b = 1, (2, 3) %}{{ a }} {{ b }}"), "1 (2, 3)");
}

}  // namespace
}  // namespace llm
