// Methods and tests as in Jinja; every expected text is real Jinja's (3.1.6, set up as transformers
// does).
#include "gtest/gtest.h"
#include "tests/unit/jinja/render.h"

namespace llm {
namespace {

TEST(JinjaMethodTest, StripsEnds) {
  EXPECT_EQ(
      Rendered(
          R"([{{ ' a '.strip() }}][{{ 'xay'.strip('xy') }}][{{ ' a '.lstrip() }}][{{ ' a '.rstrip() }}][{{ 'a</s>'.rstrip('</s>') }}])"),
      "[a][a][a ][ a][a]");
}

TEST(JinjaMethodTest, FindsText) {
  EXPECT_EQ(
      Rendered(
          R"({{ 'hello'.find('l') }} {{ 'hello'.rfind('l') }} {{ 'hello'.find('x') }} {{ 'hello'.index('e') }} {{ 'hello'.count('l') }} {{ u.find('京') }} {{ 'hello'.find('l', 3) }} {{ 'hello'.startswith('he') }} {{ 'hello'.startswith(('x', 'h')) }} {{ 'hello'.endswith('lo', 1) }} {{ 'hello'.startswith('l', 2) }})"),
      "2 3 -1 1 2 10 3 True True True True");
}

TEST(JinjaMethodTest, CutsText) {
  EXPECT_EQ(
      Rendered(
          R"({{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }})"),
      "('a', '=', 'b=c') ('a=b', '=', 'c') ('abc', '', '') bc ab");
}

TEST(JinjaMethodTest, PadsText) {
  EXPECT_EQ(
      Rendered(
          R"({{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '*') }}|{{ 'a'.center(4) }}|{{ '-5'.zfill(4) }}|{{ 'ab'.center(5, '.') }})"),
      "a  |**a| a  |-005|..ab.");
}

TEST(JinjaMethodTest, TellsKindsOfText) {
  EXPECT_EQ(
      Rendered(
          R"({{ 'ab'.isalpha() }} {{ 'a1'.isalnum() }} {{ '12'.isdigit() }} {{ ' '.isspace() }} {{ 'AB'.isupper() }} {{ 'ab'.islower() }} {{ ''.isalpha() }} {{ 'aB'.swapcase() }} {{ 'É'.lower() }})"),
      "True True True True True True False Ab é");
}

TEST(JinjaMethodTest, ReadsDicts) {
  EXPECT_EQ(
      Rendered(
          R"({{ d.get('b') }} {{ d.get('x') }} {{ d.get('x', 5) }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list }})"),
      "1 None 5 ['b', 'a'] [1, 2] [('b', 1), ('a', 2)]");
}

TEST(JinjaMethodTest, SearchesLists) {
  EXPECT_EQ(Rendered("{{ l.index(1) }} {{ [1, 2, 1].count(1) }} {{ ', '.join(['a', 'b']) }}"),
            "1 2 a, b");
}

TEST(JinjaMethodTest, ReplacesText) {
  EXPECT_EQ(Rendered("{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }}"),
            "a-b- a-bX");
}

TEST(JinjaTestTest, TellsKinds) {
  EXPECT_EQ(
      Rendered(
          R"({% for x in [none, true, 1, 1.5, 'a', [], (), {}, range(2)] %}{{ x is none }}{{ x is boolean }}{{ x is integer }}{{ x is float }}{{ x is number }}{{ x is string }}{{ x is sequence }}{{ x is iterable }}{{ x is mapping }} {% endfor %})"),
      R"(TrueFalseFalseFalseFalseFalseFalseFalseFalse FalseTrueFalseFalseTrueFalseFalseFalseFalse FalseFalseTrueFalseTrueFalseFalseFalseFalse FalseFalseFalseTrueTrueFalseFalseFalseFalse FalseFalseFalseFalseFalseTrueTrueTrueFalse FalseFalseFalseFalseFalseFalseTrueTrueFalse FalseFalseFalseFalseFalseFalseTrueTrueFalse FalseFalseFalseFalseFalseFalseTrueTrueTrue FalseFalseFalseFalseFalseFalseTrueTrueFalse )");
}

TEST(JinjaTestTest, TellsDefinedness) {
  EXPECT_EQ(
      Rendered(
          R"({{ missing is defined }} {{ missing is undefined }} {{ d.x is defined }} {{ d.b is not defined }} {{ s.strip is defined }} {{ l.append is defined }} {{ loop is defined }})"),
      "False True False False True False False");
}

TEST(JinjaTestTest, ComparesByName) {
  EXPECT_EQ(
      Rendered(
          R"({{ 1 is eq 1 }} {{ 3 is divisibleby 3 }} {{ 3 is odd }} {{ 4 is even }} {{ 1 is in [1] }} {{ 2 is gt(1) }} {{ 'a' is equalto 'a' }} {{ none is sameas none }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 'AB' is upper }} {{ 'aB' is lower }} {{ range is callable }} {{ s is not string and true }})"),
      R"(True True True True True True True True True False True True False True False)");
}

TEST(JinjaTestTest, KeepsGeneratorsApart) {
  EXPECT_EQ(
      Rendered(
          R"({{ (l|map('string')) is sequence }} {{ (l|map('string')) is iterable }} {% set g = l|map('string') %}{{ g|join }}{{ g|join }}|{{ d.items() is sequence }} {{ d.items() is iterable }} {{ d.keys() is mapping }})"),
      "False True 312|False True False");
}

}  // namespace
}  // namespace llm
