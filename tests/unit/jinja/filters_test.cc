// Filters as in Jinja; every expected text is real Jinja's (3.1.6, set up as transformers does).
#include "gtest/gtest.h"
#include "tests/unit/jinja/render.h"

namespace llm {
namespace {

TEST(JinjaFilterTest, WritesJson) {
  EXPECT_EQ(Rendered(R"({{ d|tojson }} {{ [1.0, none, true, 'é"\n\u0001/<'] | tojson }})"),
            R"({"b": 1, "a": 2} [1.0, null, true, "é\"\n\u0001/<"])");
  EXPECT_EQ(Rendered("{{ {'a': [1, {'b': []}], 'c': {}} | tojson(indent=2) }}"),
            R"({
  "a": [
    1,
    {
      "b": []
    }
  ],
  "c": {}
})");
  EXPECT_EQ(
      Rendered(
          R"({{ ['é😀']|tojson(ensure_ascii=True) }} {{ d|tojson(sort_keys=True, separators=(',', ':')) }} {{ {1: 2, none: 3, true: 4, 1.5: 2}|tojson }})"),
      R"(["\u00e9\ud83d\ude00"] {"a":2,"b":1} {"1": 4, "null": 3, "1.5": 2})");
}

TEST(JinjaFilterTest, ChangesCase) {
  EXPECT_EQ(
      Rendered(
          R"({{ u|upper }} {{ 'ÀÉ Ж'|lower }} {{ 'hELLO wORLD'|capitalize }} {{ 'foo-bar (baz) x'|title }} {{ "it's".title() }})"),
      "ZÜRICH SS 東京 àé ж Hello world Foo-Bar (Baz) X It'S");
}

TEST(JinjaFilterTest, TrimsAndReplaces) {
  EXPECT_EQ(
      Rendered(
          R"([{{ '  a\u00a0 '|trim }}] [{{ 'xxaxx'|trim('x') }}] {{ 'aaa'|replace('a', 'b', 2) }} {{ 'ab'|replace('', '-') }})"),
      "[a] [a] bba -a-b-");
}

TEST(JinjaFilterTest, TakesDefaults) {
  EXPECT_EQ(
      Rendered(
          R"({{ missing|default('x') }} {{ ''|default('x') }}| {{ ''|default('x', true) }} {{ n|d('y') }} {{ missing|default }}|)"),
      "x | x None |");
}

TEST(JinjaFilterTest, JoinsAndSplits) {
  EXPECT_EQ(
      Rendered(
          R"({{ l|join(', ') }} {{ people|join('/', attribute='name') }} {{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'a,b,c'.split(',', 1) }} {{ 'a\nb\r\nc\n'.splitlines() }} {{ ' a b c '.rsplit(none, 1) }} {{ ' a b c '.split(none, 1) }})"),
      R"(3, 1, 2 Bo/al/Cy ['a', 'b', '', 'c'] ['a', 'b'] ['a,b', 'c'] ['a', 'b,c'] ['a', 'b', 'c'] [' a b', 'c'] ['a', 'b c '])");
}

TEST(JinjaFilterTest, SelectsAndMaps) {
  EXPECT_EQ(
      Rendered(
          R"({{ people|selectattr('age', 'equalto', 3)|map(attribute='name')|list }} {{ people|rejectattr('age', 'gt', 2)|list }} {{ l|select('odd')|list }} {{ l|reject('in', [1])|list }} {{ ['a', 'b']|map('upper')|list }} {{ people|map(attribute='x', default=0)|list }} {{ n|map('upper')|list }} {{ [0, 1, '']|select|list }})"),
      R"(['Bo', 'Cy'] [{'name': 'al', 'age': 1}] [3, 1] [3, 2] ['A', 'B'] [0, 0, 0] [] [1])");
}

TEST(JinjaFilterTest, SortsStably) {
  EXPECT_EQ(
      Rendered(
          R"({{ ['b', 'A', 'c', 'a']|sort }} {{ ['b', 'A']|sort(case_sensitive=true) }} {{ l|sort(reverse=true) }} {{ people|sort(attribute='age,name')|map(attribute='name')|list }} {{ people|sort(attribute='age', reverse=true)|map(attribute='name')|list }})"),
      R"(['A', 'a', 'b', 'c'] ['A', 'b'] [3, 2, 1] ['al', 'Bo', 'Cy'] ['Bo', 'Cy', 'al'])");
}

TEST(JinjaFilterTest, SortsDicts) {
  EXPECT_EQ(
      Rendered(
          R"({{ d|dictsort }} {{ d|dictsort(by='value') }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ d|dictsort(reverse=true) }})"),
      R"([('a', 2), ('b', 1)] [('b', 1), ('a', 2)] [('A', 2), ('b', 1)] [('b', 1), ('a', 2)])");
}

TEST(JinjaFilterTest, TakesSequencesApart) {
  EXPECT_EQ(
      Rendered(
          R"({{ l|first }} {{ l|last }} {{ []|first }}| {{ l|reverse|list }} {{ 'abc'|reverse }} {{ 'abc'|list }} {{ [1, 1, 2, 'A', 'a']|unique|list }} {{ range(7)|batch(3, 'x')|list }} {{ range(7)|slice(3)|list }} {{ d|items|list }} {{ d|list }})"),
      R"(3 2 | [2, 1, 3] cba ['a', 'b', 'c'] [1, 2, 'A'] [[0, 1, 2], [3, 4, 5], [6, 'x', 'x']] [[0, 1, 2], [3, 4], [5, 6]] [('b', 1), ('a', 2)] ['b', 'a'])");
}

TEST(JinjaFilterTest, Aggregates) {
  EXPECT_EQ(
      Rendered(
          R"({{ l|sum }} {{ people|sum(attribute='age') }} {{ l|min }} {{ l|max }} {{ ['b', 'A']|max }} {{ []|min }}|{% for k, v in people|groupby('age') %}{{ k }}:{{ v|map(attribute='name')|join(',') }};{% endfor %})"),
      "6 7 1 3 b |1:al;3:Bo,Cy;");
}

TEST(JinjaFilterTest, ConvertsNumbers) {
  EXPECT_EQ(
      Rendered(
          R"({{ '42'|int }} {{ 'x'|int }} {{ 'x'|int(-1) }} {{ '3.9'|int }} {{ 3.9|int }} {{ 'ff'|int(base=16) }} {{ ' 1_0 '|int }} {{ '1.5'|float }} {{ 'x'|float }} {{ 5|float }} {{ -3|abs }} {{ 42.55|round(1) }} {{ 2.5|round }} {{ 42.55|round(1, 'floor') }} {{ 42.1|round(0, 'ceil') }} {{ 7|round }} {{ 1500000|filesizeformat }} {{ true|int }})"),
      "42 0 -1 3 3 255 10 1.5 0.0 5.0 3 42.5 2.0 42.5 43.0 7 1.5 MB 1");
}

TEST(JinjaFilterTest, Indents) {
  EXPECT_EQ(Rendered(R"({{ 'a\nb\n\nc'|indent }})"),
            R"(a
    b

    c)");
  EXPECT_EQ(Rendered(R"({{ 'a\n\nb\n'|indent(2, true, true) }}|)"),
            R"(  a
  
  b
  |)");
  EXPECT_EQ(Rendered(R"({{ 'a\nb'|indent('> ', first=true) }})"),
            R"(> a
> b)");
}

TEST(JinjaFilterTest, FormatsText) {
  EXPECT_EQ(
      Rendered(
          R"({{ '%s %d %5.2f|%-5s|%05d %x %%' % ('a', 3, 2.5, 'b', 42, 255) }} {{ '%s'|format(l) }} {{ '%(a)s'|format(a=1) }} {{ '%r' % 'q' }} {{ '%s' % 1 }})"),
      "a 3  2.50|b    |00042 ff % [3, 1, 2] 1 'q' 1");
  EXPECT_EQ(
      Rendered(
          R"({{ '{0} {1} {x!r} {y:>5}|{y:<5}|{y:^5}|{z:,} {z:.2f} {{}} {w:05d}'.format('a', 'b', x='q', y=1, z=1234.5, w=42) }} {{ '{}-{}'.format(1, true) }} {{ '{:*^7}'.format('ab') }} {{ '{:+d} {:x} {:b} {:%}'.format(5, 255, 5, 0.25) }})"),
      R"(a b 'q'     1|1    |  1  |1,234.5 1234.50 {} 00042 1-True **ab*** +5 ff 101 25.000000%)");
}

TEST(JinjaFilterTest, EscapesPlainTextJoinedWithMarkup) {
  EXPECT_EQ(
      Rendered(
          R"({{ '<b>'|safe + '<i>' }} {{ '<' + '>'|safe }} {{ '<b>'|safe ~ '<i>' }} {{ '<&"\''|e }} {{ '<'|safe|upper + '<' }} {{ ['<'|safe] }})"),
      "<b>&lt;i&gt; &lt;> <b><i> &lt;&amp;&#34;&#39; <&lt; [Markup('<')]");
}

TEST(JinjaFilterTest, CountsTruncatesAndEncodes) {
  EXPECT_EQ(
      Rendered(
          R"({{ 'a b  c'|wordcount }} {{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }} {{ 'foo bar baz qux'|truncate(11) }} {{ 'a b/é?'|urlencode }} {{ 'ab'|center(6) }}| {{ d|length }} {{ d|count }} {{ missing|length }})"),
      "3 foo... foo ba... foo bar baz qux a%20b/%C3%A9%3F   ab  | 2 2 0");
}

}  // namespace
}  // namespace llm
