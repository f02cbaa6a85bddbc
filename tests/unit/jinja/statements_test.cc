// Statements, white space and scopes as in Jinja; every expected text is real Jinja's (3.1.6, set
// up as transformers does).
#include "gtest/gtest.h"
#include "tests/unit/jinja/render.h"

namespace llm {
namespace {

TEST(JinjaStatementTest, ChoosesBranches) {
  EXPECT_EQ(Rendered("{% if i > 10 %}a{% elif i > 5 %}b{% else %}c{% endif %}"), "b");
}

TEST(JinjaStatementTest, TellsLoopPositions) {
  EXPECT_EQ(
      Rendered(
          R"({% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% endfor %})"),
      "1032TrueFalse31a;2121FalseFalse332b;3210FalseTrue31a;");
}

TEST(JinjaStatementTest, FiltersLoopsAndUsesElse) {
  EXPECT_EQ(
      Rendered(R"({% for x in l if x > 1 %}{{ x }}/{{ loop.length }} {% else %}none{% endfor %})"),
      "3/2 2/2 ");
  EXPECT_EQ(Rendered("{% for x in l if x > 5 %}{{ x }}{% else %}none{% endfor %}"), "none");
}

TEST(JinjaStatementTest, UnpacksLoopTargets) {
  EXPECT_EQ(
      Rendered(
          R"({% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %})"),
      "b=1,a=2,123");
}

TEST(JinjaStatementTest, BreaksAndContinues) {
  EXPECT_EQ(
      Rendered(
          R"({% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %})"),
      "0134");
}

TEST(JinjaStatementTest, RecursesIntoLoops) {
  EXPECT_EQ(
      Rendered(
          R"({% for x in [{'n': 1, 'c': [{'n': 2, 'c': []}]}, {'n': 3, 'c': []}] recursive %}{{ x.n }}@{{ loop.depth }}[{{ loop(x.c) }}]{% endfor %})"),
      "1@1[2@2[]]3@1[]");
}

TEST(JinjaStatementTest, KeepsAssignmentsInsideOfLoops) {
  EXPECT_EQ(
      Rendered(
          R"({% set x = 1 %}{% for y in l %}{{ x }}{% set x = y %}{{ x }} {% endfor %}{{ x }})"),
      "13 11 12 1");
}

TEST(JinjaStatementTest, CarriesValuesOutOfLoopsByNamespace) {
  EXPECT_EQ(
      Rendered(
          R"({% set ns = namespace(x=0, seen=[]) %}{% for y in l %}{% set ns.x = ns.x + y %}{% set ns.seen = ns.seen + [y] %}{% endfor %}{{ ns.x }} {{ ns.seen }})"),
      "6 [3, 1, 2]");
}

TEST(JinjaStatementTest, CapturesBlocks) {
  EXPECT_EQ(
      Rendered(
          R"({% set x %}a{{ i }}{% endset %}{{ x }}{% set y | upper | trim %} q{% endset %}{{ y }})"),
      "a7Q");
}

TEST(JinjaStatementTest, CallsMacrosWithDefaults) {
  EXPECT_EQ(
      Rendered(
          R"({% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m() }} {{ m(b=5) }})"),
      "121 123 2 5");
}

TEST(JinjaStatementTest, PassesVarargsAndKwargs) {
  EXPECT_EQ(
      Rendered(
          R"({% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }})"),
      "1(2, 3){'x': 4}");
}

TEST(JinjaStatementTest, SeesOuterVariablesInMacros) {
  EXPECT_EQ(
      Rendered(R"({% macro m() %}{{ x }}{{ i }}{% endmacro %}{{ m() }}{% set x = 5 %}{{ m() }})"),
      "757");
}

TEST(JinjaStatementTest, CallsBack) {
  EXPECT_EQ(
      Rendered(
          R"({% macro m(a) %}<{{ a }}{{ caller(a + 1) }}>{% endmacro %}{% call(z) m(1) %}in{{ z }}{% endcall %})"),
      "<1in2>");
}

TEST(JinjaStatementTest, RecursesInMacros) {
  EXPECT_EQ(
      Rendered(
          R"({% macro f(n) %}{% if n > 1 %}{{ n * (f(n - 1) | int) }}{% else %}1{% endif %}{% endmacro %}{{ f(5) }})"),
      "120");
}

TEST(JinjaStatementTest, FiltersBlocks) {
  EXPECT_EQ(Rendered("{% filter upper | replace('B', 'x') %}ab{{ i }}c{% endfilter %}"), "Ax7C");
}

TEST(JinjaStatementTest, OpensScopesByWith) {
  EXPECT_EQ(Rendered("{% with a = 1, b = i %}{{ a }}{{ b }}{% endwith %}{{ a }}"), "17");
}

TEST(JinjaStatementTest, IgnoresTheGenerationTag) {
  EXPECT_EQ(Rendered("a{% generation %}b{{ i }}{% endgeneration %}c"), "ab7c");
}

TEST(JinjaStatementTest, TellsChangesInLoops) {
  EXPECT_EQ(Rendered("{% for p in people %}{{ loop.changed(p.age) }} {% endfor %}"),
            "True True True ");
}

TEST(JinjaWhiteSpaceTest, DropsTheLineEndBehindABlock) {
  EXPECT_EQ(Rendered(R"(a
{% if t %}
b
{% endif %}
c
)"),
            R"(a
b
c)");
}

TEST(JinjaWhiteSpaceTest, DropsTheIndentationBeforeABlock) {
  EXPECT_EQ(Rendered(R"(a
   {% if t %}
  b
   {% endif %}  c)"),
            R"(a
  b
  c)");
}

TEST(JinjaWhiteSpaceTest, KeepsWhiteSpaceAroundExpressions) {
  EXPECT_EQ(Rendered(R"(a
  {{ i }}
 b {{ i }}
)"),
            R"(a
  7
 b 7)");
}

TEST(JinjaWhiteSpaceTest, ObeysHyphens) {
  EXPECT_EQ(Rendered(R"(a 
 {%- if t -%} 
 b 
 {%- endif -%} 
 c {{- i -}} d)"),
            "abc7d");
}

TEST(JinjaWhiteSpaceTest, ObeysPlusSigns) {
  EXPECT_EQ(Rendered(R"(a
  {%+ if t +%}
b
  {%+ endif %}
c)"),
            R"(a
  
b
  c)");
}

TEST(JinjaWhiteSpaceTest, DropsComments) {
  EXPECT_EQ(Rendered(R"(a
  {# note #}
b {#- x -#} c{# {{ no }} #}
 d)"),
            R"(a
bc d)");
}

TEST(JinjaWhiteSpaceTest, KeepsRawText) {
  EXPECT_EQ(Rendered(R"(a
 {% raw %}
{{ x }}{% if %}
 {% endraw %}
b)"),
            R"(a

{{ x }}{% if %}
b)");
  EXPECT_EQ(Rendered("x {%- raw -%} {{ y }} {%- endraw -%} z"), "x{{ y }}z");
}

TEST(JinjaWhiteSpaceTest, DropsOneFinalLineEnd) {
  EXPECT_EQ(Rendered(R"(a

)"),
            R"(a
)");
  EXPECT_EQ(Rendered("a\r\nb\rc\r\n"),
            R"(a
b
c)");
}

TEST(JinjaWhiteSpaceTest, StripsAfterTagsOnOneLine) {
  EXPECT_EQ(Rendered(R"(  {% set x = 1 %}  {% set y = 2 %}z
	{% set q = 3 %}{{ q }})"),
            R"(  z
3)");
}

TEST(JinjaUndefinedTest, PrintsAsNothing) {
  EXPECT_EQ(
      Rendered(
          R"([{{ missing }}] [{{ d.x }}] [{{ missing ~ 'a' }}] [{{ l[9] }}] {{ [missing] }} {{ missing == other }} {{ missing == none }} {{ not missing }}{% for x in missing %}x{% endfor %})"),
      "[] [] [a] [] [Undefined] True False True");
}

TEST(JinjaGlobalTest, FormatsTheClock) {
  EXPECT_EQ(
      Rendered(
          R"({{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ strftime_now('%d %b %Y, %A %a %B %j %y %I %p %-d %-m %% %e') }})"),
      R"(2025-07-26 09:05:03 26 Jul 2025, Saturday Sat July 207 25 09 AM 26 7 % 26)");
}

TEST(JinjaGlobalTest, KeepsNamespaceMembersApart) {
  EXPECT_EQ(
      Rendered(
          R"({% set a = namespace(x=1) %}{% set b = a %}{% set b.x = 2 %}{{ a.x }} {{ a.y is defined }} {{ a['x'] }})"),
      "2 False 2");
}

}  // namespace
}  // namespace llm
